// Implements the native part of `weft advise`, which runs once per rank. The user's command, and
// rank 0 if `weft advise` is started by a launcher, continue in Python. Python starts this program
// again with the option --directory, and shows the report afterwards.
#include "launch/advise.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "advise/variables.h"
#include "base/first_rank.h"
#include "launch/launcher.h"
#include "launch/run.h"
#include "launch/saying.h"

namespace weft::launch {
namespace {

struct Arguments {
  std::string directory, overhead, mpi;
  // The arguments of a replay of recorded calls: the replay program, its form ("library" or
  // "auto"), the file of recorded calls, and the directories of the MPI library for
  // LD_LIBRARY_PATH.
  std::string replay, form, plan, libraries;
  bool check = false;  // true for `weft check`
  bool verify = false, refused = false, help = false;
  std::vector<std::string> command;
};

// Returns whether `word` is an option of the Python part whose value is the next word, as in "--out
// FILE". Returns false for "--out=FILE" and for options without a value.
bool has_value_behind(std::string_view word) {
  for (const std::string_view flag :
       {"--check", "--verify", "--sample", "--no-sample", "--help", advise::kRefusedOption})
    if (word == flag) return false;
  if (word.find('=') != word.npos) return false;
  return word.substr(0, 2) == "--" || word.size() == 2;
}

// Reads the options that the native part needs from the command line. It skips all others, which
// are for Python.
Arguments read(int argc, char** argv) {
  Arguments found;
  const auto value_of = [&](int& i, std::string_view name) -> const char* {
    const std::string_view word = argv[i];
    if (word == name) return i + 1 < argc ? argv[++i] : "";
    const bool joined = word.substr(0, name.size() + 1) == std::string(name) + "=";
    return joined ? argv[i] + name.size() + 1 : nullptr;
  };
  for (int i = 0; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--" || word.substr(0, 1) != "-") {
      found.command.assign(argv + i + (word == "--"), argv + argc);
      break;
    }
    found.check |= word == "--check";
    found.verify |= word == "--verify";
    found.help |= word == "--help";
    found.refused |= word == advise::kRefusedOption;
    if (const char* directory = value_of(i, "--directory"))
      found.directory = directory;
    else if (const char* overhead = value_of(i, "--overhead"))
      found.overhead = overhead;
    else if (const char* mpi = value_of(i, "--mpi"))
      found.mpi = mpi;
    else if (const char* replay = value_of(i, "--replay"))
      found.replay = replay;
    else if (const char* form = value_of(i, "--form"))
      found.form = form;
    else if (const char* plan = value_of(i, "--plan"))
      found.plan = plan;
    else if (const char* libraries = value_of(i, "--libraries"))
      found.libraries = libraries;
    else if (has_value_behind(word))
      ++i;
  }
  return found;
}

// Returns whether the command is `weft lab run`, which starts a job like a launcher does.
bool starts_lab(const std::vector<std::string>& command) {
  const std::string& program = command[0];
  return command.size() > 2 && program.substr(program.rfind('/') + 1) == "weft" &&
         command[1] == "lab" && command[2] == "run";
}

// Makes the kernel kill this process when its Python parent dies. On rank 0 the launcher started
// the parent, and a launcher that kills the job kills only the parent.
void end_with_parent() {
  const char* const parent = std::getenv(advise::kParentVariable);
  if (parent && std::to_string(getppid()) == parent) prctl(PR_SET_PDEATHSIG, SIGKILL);
}

// Starts the replay program with the MPI library of the recorded program. If the form is "auto",
// Weft is preloaded.
int replay(const std::string& self, const Arguments& arguments) {
  std::string directories = arguments.libraries;
  if (const char* before = std::getenv("LD_LIBRARY_PATH")) directories += std::string(":") + before;
  setenv("LD_LIBRARY_PATH", directories.c_str(), 1);
  RunOptions options;
  options.command = {arguments.replay, arguments.form, arguments.plan, arguments.plan + ".times"};
  if (arguments.form == "auto") {
    // Replays keep their learnt choices in a file of their own, so that later replays start with
    // them, as a long-running program would. The user's own file stays unchanged.
    setenv("WEFT_PLAN_CACHE", (arguments.plan + ".learnt").c_str(), 1);
    return start_program(self, options);
  }
  std::vector<const char*> words;
  for (const auto& word : options.command) words.push_back(word.c_str());
  words.push_back(nullptr);
  return become(arguments.replay, words.data());
}

// Starts the rank's program with the advisor's library preloaded. Returns an exit status if that
// fails.
int start_watched(const std::string& self, const Arguments& arguments) {
  auto options = watching_options(arguments.mpi, arguments.command);
  if (!options) return refuse(options.error().message);
  return start_program(self, *options);
}

// Starts this rank's program although Python has refused the command line. The preloaded advisor's
// library then tells the other ranks in MPI_Init that all must end. Otherwise they would wait in
// MPI_Init for this rank. Returns 2 if the command does not start a rank.
int end_with_all(const std::string& self, const Arguments& arguments) {
  const auto& command = arguments.command;
  if (command.empty() || launcher_of_command(command[0]) != Launcher::none || starts_lab(command))
    return 2;
  setenv(advise::kRefusedVariable, "1", 1);
  // Only the command is passed on, without option --mpi, which may be what Python has refused.
  Arguments plain;
  plain.command = command;
  return start_watched(self, plain);
}

}  // namespace

std::optional<int> advise(const std::string& self, int argc, char** argv) {
  Arguments arguments = read(argc, argv);
  if (arguments.refused) return end_with_all(self, arguments);
  if (arguments.command.empty() || arguments.help) return std::nullopt;
  const Launcher launcher = launcher_of_command(arguments.command[0]);
  const bool prepared = !arguments.directory.empty();
  // The launcher's variables alone do not tell that this process is a rank, since a batch script
  // that starts a job has them, too. Therefore the command is also examined.
  const bool starts_job = launcher != Launcher::none || starts_lab(arguments.command);
  if (arguments.verify && launched_rank() && !starts_job)
    return refuse("weft advise --verify starts a job: put weft advise before the launcher");
  if (launched_rank() && !starts_job) setenv(advise::kInsideVariable, "1", 1);
  if (!prepared && (launcher != Launcher::none || is_first_rank())) return std::nullopt;
  if (launcher != Launcher::none) {
    std::vector<std::string> prefix = {self, "advise", "--directory", arguments.directory};
    if (!arguments.overhead.empty())
      prefix.insert(prefix.end(), {"--overhead", arguments.overhead});
    if (arguments.check) prefix.push_back("--check");
    if (!arguments.mpi.empty()) prefix.insert(prefix.end(), {"--mpi", arguments.mpi});
    if (!arguments.replay.empty())
      prefix.insert(prefix.end(), {"--replay", arguments.replay, "--form", arguments.form, "--plan",
                                   arguments.plan, "--libraries", arguments.libraries});
    prefix.push_back("--");
    return start_launcher(launcher, arguments.command, prefix, false);
  }
  if (!arguments.replay.empty()) return replay(self, arguments);
  end_with_parent();
  if (arguments.check) setenv(advise::kCheckVariable, "1", 1);
  if (prepared) setenv(advise::kDirectoryVariable, arguments.directory.c_str(), 1);
  if (!arguments.overhead.empty()) setenv(advise::kOverheadVariable, arguments.overhead.c_str(), 1);
  return start_watched(self, arguments);
}

}  // namespace weft::launch
