// Options of `weft run`: one table of option and variable, checked by the library's own Config.
#include "launch/options.h"

#include <array>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include "base/config.h"

extern char** environ;

namespace weft::launch {
namespace {

struct ValueOption {
  std::string_view option;
  const char* variable;
};
constexpr std::array<ValueOption, 10> kValueOptions = {{{"--engine", "WEFT_ENGINE"},
                                                        {"--placement", "WEFT_PLACEMENT"},
                                                        {"--backoff", "WEFT_BACKOFF"},
                                                        {"--transport", "WEFT_TRANSPORT"},
                                                        {"--xpmem", "WEFT_XPMEM"},
                                                        {"--init-budget", "WEFT_INIT_BUDGET"},
                                                        {"--plan-cache", "WEFT_PLAN_CACHE"},
                                                        {"--mpi", "WEFT_MPI"},
                                                        {"--trace", "WEFT_TRACE"},
                                                        {"--watchdog", "WEFT_WATCHDOG"}}};
constexpr const char* kSharedHeapBytes = "65536";
constexpr std::string_view kAlgorithmVariable = "WEFT_ALGORITHM_";

Result<Family> parse_mpi(std::string_view text) {
  if (text.empty()) return Family::unknown;
  if (text == "mpich" || text == "intelmpi") return Family::mpich;
  if (text == "openmpi") return Family::openmpi;
  if (text == "abi") return Family::abi;
  return Error{"unknown MPI '" + std::string(text) +
               "'; choose one of mpich, intelmpi, openmpi, abi"};
}

// --algorithm KIND=NAME sets WEFT_ALGORITHM_<KIND>.
Result<bool> set_algorithm(std::string_view value) {
  const auto equals = value.find('=');
  std::string kinds;
  for (int i = 0; i < kKinds; ++i) {
    const std::string_view kind = kind_name(static_cast<Kind>(i));
    kinds += (i ? ", " : "") + std::string(kind);
    if (equals == std::string_view::npos || value.substr(0, equals) != kind) continue;
    std::string variable(kAlgorithmVariable);
    for (const char c : kind) variable += static_cast<char>(std::toupper(c));
    setenv(variable.c_str(), std::string(value.substr(equals + 1)).c_str(), 1);
    return true;
  }
  return Error{"--algorithm needs KIND=NAME, not '" + std::string(value) + "'; KIND is one of " +
               kinds};
}

// Handles one option that has a value; false: `name` is no such option.
Result<bool> set_value_option(std::string_view name, const std::string& value) {
  if (name == "--algorithm") return set_algorithm(value);
  for (const auto& known : kValueOptions) {
    if (known.option != name) continue;
    if (value.empty()) return Error{std::string(name) + " needs a value"};
    setenv(known.variable, value.c_str(), 1);
    return true;
  }
  return false;
}

bool set_flag(std::string_view name, RunOptions& options) {
  if (name == "--summary") {
    setenv("WEFT_SUMMARY", "1", 1);
  } else if (name == "--blocking") {
    setenv("WEFT_BLOCKING", "1", 1);
  } else if (name == "--reproducible") {
    setenv("WEFT_REPRODUCIBLE", "1", 1);
  } else if (name == "--shared-heap") {
    setenv("WEFT_SHARED_HEAP", kSharedHeapBytes, 1);
  } else if (name == "--verbose") {
    options.verbose = true;
  } else if (name == "--help" || name == "-h") {
    options.help = true;
  } else {
    return false;
  }
  return true;
}

// Takes argv[i] (and its value), moves i past them.
Result<bool> take_option(int argc, char** argv, int& i, RunOptions& options) {
  const std::string_view argument = argv[i++];
  const auto equals = argument.find('=');
  const std::string_view name = argument.substr(0, equals);
  if (name == "--summary" && equals != std::string_view::npos) {
    setenv("WEFT_SUMMARY", argv[i - 1] + equals + 1, 1);
    return true;
  }
  if (name == "--shared-heap" && equals != std::string_view::npos) {
    setenv("WEFT_SHARED_HEAP", argv[i - 1] + equals + 1, 1);
    return true;
  }
  if (equals == std::string_view::npos && set_flag(name, options)) return true;
  const bool inside = equals != std::string_view::npos;
  const std::string value = inside ? argv[i - 1] + equals + 1 : i < argc ? argv[i] : "";
  auto taken = set_value_option(name, value);
  if (!taken) return taken.error();
  if (!*taken) return Error{"unknown option '" + std::string(argument) + "'; see weft run --help"};
  if (!inside) ++i;
  return true;
}

}  // namespace

const char* family_name(Family family) {
  constexpr std::array<const char*, 4> names = {"unknown", "mpich", "openmpi", "abi"};
  return names[static_cast<std::size_t>(family)];
}

Result<RunOptions> parse_run_options(int argc, char** argv) {
  RunOptions options;
  int i = 0;
  while (i < argc && argv[i][0] == '-') {
    if (std::string_view(argv[i]) == "--") {
      ++i;
      break;
    }
    auto taken = take_option(argc, argv, i, options);
    if (!taken) return taken.error();
  }
  options.command.assign(argv + i, argv + argc);
  const char* mpi = std::getenv("WEFT_MPI");
  auto family = parse_mpi(mpi ? mpi : "");
  if (!family) return family.error();
  options.mpi = *family;
  auto config = Config::from_environment();
  if (!config) return config.error();
  return options;
}

std::vector<std::string> options_from_environment(bool verbose) {
  std::vector<std::string> options;
  for (const auto& known : kValueOptions) {
    const char* value = std::getenv(known.variable);
    if (value && *value) options.push_back(std::string(known.option) + "=" + value);
  }
  if (const char* summary = std::getenv("WEFT_SUMMARY"); summary && *summary)
    options.push_back(std::string("--summary=") + summary);
  if (const char* blocking = std::getenv("WEFT_BLOCKING"); blocking && *blocking == '1')
    options.push_back("--blocking");
  if (const char* same = std::getenv("WEFT_REPRODUCIBLE"); same && *same == '1')
    options.push_back("--reproducible");
  if (const char* heap = std::getenv("WEFT_SHARED_HEAP"); heap && *heap)
    options.push_back(std::string("--shared-heap=") + heap);
  for (char** entry = environ; *entry; ++entry) {
    std::string_view text = *entry;
    if (text.substr(0, kAlgorithmVariable.size()) != kAlgorithmVariable) continue;
    text.remove_prefix(kAlgorithmVariable.size());
    std::string option = "--algorithm=";
    const auto equals = text.find('=');
    for (const char c : text.substr(0, equals))
      option += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    options.push_back(option + std::string(text.substr(equals)));
  }
  if (verbose) options.push_back("--verbose");
  return options;
}

const char* const kRunHelp =
    R"(Usage: weft run [OPTIONS] -- COMMAND [ARGUMENTS]

Runs an unmodified MPI program with its non-blocking collectives under Weft.
COMMAND is one rank's program (mpiexec -n 4 weft run -- ./app) or the launcher
itself (weft run -- mpiexec -n 4 ./app); Weft is then loaded into the ranks only.

  --engine E       native, assist, function, thread, tcc, auto     WEFT_ENGINE
  --placement P    bind, numa, pack:K, list:C,C,...                WEFT_PLACEMENT
  --backoff B      yield, spin, sleep:US (microseconds)            WEFT_BACKOFF
  --transport T    auto: shared memory between ranks of one node;  WEFT_TRANSPORT
                   mpi: never
  --algorithm K=A  algorithm A for collective K                    WEFT_ALGORITHM_K
  --blocking       all blocking collectives by Weft's schedules;   WEFT_BLOCKING=1
                   without, auto takes those in shared memory      (0: none)
  --reproducible   reductions come out the same to the last bit    WEFT_REPRODUCIBLE=1
                   however the ranks are spread over nodes
                   (implies --blocking)
  --init-budget T  how long a persistent initialisation may        WEFT_INIT_BUDGET
                   compare algorithms: 10ms (the default), 0...
  --plan-cache F   the file that keeps what was found; none:       WEFT_PLAN_CACHE
                   measure in every run
  --shared-heap    large allocations of the program from memory    WEFT_SHARED_HEAP
                   that ranks of a node share: collectives on it     =65536
                   need no copy; =BYTES: from that size on
  --xpmem X        auto: where the system has it, other large      WEFT_XPMEM
                   buffers need no copy either; off: never;
                   /PATH: by that library, wherever it may be
  --mpi M          mpich, intelmpi, openmpi, abi: for a program    WEFT_MPI
                   that does not show which MPI library it uses
  --summary        print at the end what was overlapped            WEFT_SUMMARY=1
  --summary=json:FILE  write the summary to FILE                   WEFT_SUMMARY=json:FILE
  --trace FILE     write a timeline to FILE                        WEFT_TRACE
  --watchdog S     after S seconds in one call, say which call     WEFT_WATCHDOG
                   waits, and for whom
  --verbose        say which Weft library is loaded, and why

An option wins over its variable. Exit status: the program's own; 2 when Weft
refuses; 126 or 127 when the program cannot be started or is not found.
)";

}  // namespace weft::launch
