// Converts the options of `weft run` to environment variables, and checks these with the same class
// Config that the preloaded library uses.
#include "launch/options.h"

#include <array>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include "base/config.h"
#include "base/options.h"
#include "base/quoted.h"
#include "base/site_file.h"
#include "launch/algorithm_names.h"

extern char** environ;

namespace weft::launch {
namespace {

Result<bool> check_algorithm(Kind kind, std::string_view name) {
  if (name == kLibrarys) return true;
  std::string choices;
  for (const char* const one : algorithm_names(kind)) {
    if (name == one) return true;
    choices += (choices.empty() ? "" : ", ") + std::string(one);
  }
  return Error{"unknown algorithm " + in_quotes(name) + " for " + kind_name(kind) +
               "; choose one of " + choices + kOrLibrarys};
}

// Sets the variable WEFT_ALGORITHM_<KIND> from the value KIND=NAME of option --algorithm. Returns
// an error if the value has another form.
Result<bool> set_algorithm(std::string_view value) {
  const auto equals = value.find('=');
  std::string kinds;
  for (int i = 0; i < kKinds; ++i) {
    const std::string_view kind = kind_name(static_cast<Kind>(i));
    kinds += (i ? ", " : "") + std::string(kind);
    if (equals == std::string_view::npos || value.substr(0, equals) != kind) continue;
    auto known = check_algorithm(static_cast<Kind>(i), value.substr(equals + 1));
    if (!known) return known;
    const std::string variable = algorithm_variable(static_cast<Kind>(i));
    setenv(variable.c_str(), std::string(value.substr(equals + 1)).c_str(), 1);
    return true;
  }
  return Error{"--algorithm needs KIND=NAME, not " + in_quotes(value) + "; KIND is one of " +
               kinds};
}

const Option* find_option(std::string_view name) {
  if (name == "-h") name = kHelpOption;
  for (const Option& option : option_table())
    if (name == option.name) return &option;
  return nullptr;
}

// Handles an option that has no environment variable and only affects how `weft run` starts the
// program. Returns false if the option is not such an option.
bool set_flag(const Option& option, std::string_view value, RunOptions& options) {
  if (option.name == std::string_view(kHelpOption))
    options.help = value == "json" ? RunOptions::Help::json : RunOptions::Help::text;
  else if (option.name == std::string_view(kVerboseOption))
    options.verbose = true;
  else
    return false;
  return true;
}

Result<bool> set_value(const Option& option, const std::string& value) {
  if (option.name == std::string_view(kAlgorithmOption)) return set_algorithm(value);
  if (value.empty() && !option.alone) return Error{std::string(option.name) + " needs a value"};
  setenv(option.variable, value.c_str(), 1);
  return true;
}

// Handles the option argv[i] and its value, and moves `i` past both. Returns an error if the option
// is unknown or its value is missing.
Result<bool> take_option(int argc, char** argv, int& i, RunOptions& options) {
  const std::string_view argument = argv[i++];
  const auto equals = argument.find('=');
  const bool inside = equals != std::string_view::npos;
  std::string value(inside ? argument.substr(equals + 1) : "");
  const Option* option = find_option(argument.substr(0, equals));
  if (!option) return Error{"unknown option " + in_quotes(argument) + "; see weft run --help"};
  if (set_flag(*option, value, options)) return true;
  if (!inside && option->alone)
    value = option->alone;
  else if (!inside && i < argc)
    value = argv[i++];
  return set_value(*option, value);
}

Result<bool> check_algorithms(const Config& config) {
  for (int i = 0; i < kKinds; ++i) {
    const std::string& asked = config.algorithm[static_cast<std::size_t>(i)];
    const auto known = asked.empty() ? true : check_algorithm(static_cast<Kind>(i), asked);
    if (!known) return known;
  }
  return true;
}

// Reads the site file, and sets its variables in the environment, except those that the user has
// set.
SiteFile take_site_file(const std::string& name) {
  SiteFile site = read_site_file(name, check_algorithms);
  for (const auto& [variable, value] : site.values) setenv(variable.c_str(), value.c_str(), 0);
  return site;
}

}  // namespace

Result<Family> family_of_word(std::string_view text) {
  if (text.empty()) return Family::unknown;
  if (text == "mpich" || text == "intelmpi") return Family::mpich;
  if (text == "openmpi") return Family::openmpi;
  if (text == "abi") return Family::abi;
  return Error{"unknown MPI " + in_quotes(text) + "; choose one of " + kMpiChoices};
}

const char* family_name(Family family) {
  constexpr std::array<const char*, 4> names = {"unknown", "mpich", "openmpi", "abi"};
  return names[static_cast<std::size_t>(family)];
}

Result<RunOptions> parse_run_options(const std::string& self, int argc, char** argv) {
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
  const SiteFile site = take_site_file(site_file_of(self));
  options.site_mistake = site.mistake;
  const char* mpi = std::getenv("WEFT_MPI");
  auto family = family_of_word(mpi ? mpi : "");
  if (!family) return family.error();
  options.mpi = *family;
  auto config = Config::from_environment();
  if (!config)
    options.refusal = config.error().message +
                      site.share_in_mistake([](const char* name) { return std::getenv(name); });
  return options;
}

std::vector<std::string> options_from_environment(bool verbose) {
  std::vector<std::string> options;
  for (const Option& option : option_table()) {
    const char* value = *option.variable ? std::getenv(option.variable) : nullptr;
    if (value && *value) options.push_back(std::string(option.name) + "=" + value);
  }
  const std::string_view prefix = kAlgorithmVariable;
  for (char** entry = environ; *entry; ++entry) {
    std::string_view text = *entry;
    if (text.substr(0, prefix.size()) != prefix) continue;
    text.remove_prefix(prefix.size());
    std::string option = std::string(kAlgorithmOption) + "=";
    const auto equals = text.find('=');
    for (const char c : text.substr(0, equals))
      option += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    options.push_back(option + std::string(text.substr(equals)));
  }
  if (verbose) options.push_back(kVerboseOption);
  return options;
}

}  // namespace weft::launch
