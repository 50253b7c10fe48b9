// Builds the texts by which stored plans tell jobs apart (job_words.h). It recognises Python's
// command line options, and prints settings in the form of their options.
#include "select/job_words.h"

#include <string_view>

namespace weft {
namespace {

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// An option of Python with a value, which is the rest of its word or the next word: "-m app",
// "-mapp" or, after other options, "-Bm app".
struct Option {
  char name = 0;  // letter of the option; 0 for an option without a value
  std::string value;
};

// Returns the option in word *i of the command line, and sets *i to the last word of the option.
Option option_at(const std::vector<std::string>& command_line, std::size_t* i) {
  const std::string& word = command_line[*i];
  const auto value = [&](std::size_t taken) {
    if (taken < word.size()) return word.substr(taken);
    return ++*i < command_line.size() ? command_line[*i] : "";
  };
  if (word == "--check-hash-based-pycs") return {'-', value(word.size())};
  if (word.starts_with("--")) return {};
  const std::size_t at = word.find_first_of("cmWX");
  return at == word.npos ? Option{} : Option{word[at], value(at + 1)};
}

// Returns the script or module that Python runs. If a module runs a script itself, as in "python3
// -m mpi4py app.py", it returns the first later word that names a script.
std::string script_words(const std::vector<std::string>& command_line) {
  std::string module;
  for (std::size_t i = 1; i < command_line.size(); ++i) {
    const std::string& word = command_line[i];
    const bool is_option = word.starts_with('-');
    if (!module.empty()) {
      if (!is_option && word.ends_with(".py")) return file_name(word);
    } else if (word == "-" || !is_option) {
      return file_name(word);
    } else if (const Option option = option_at(command_line, &i); option.name == 'c') {
      return "-c";
    } else if (option.name == 'm') {
      module = option.value;
    }
  }
  return module;
}

std::string words_of(const BackOff& backoff) {
  switch (backoff.kind) {
    case BackOff::Kind::yield:
      return "yield";
    case BackOff::Kind::spin:
      return "spin";
    case BackOff::Kind::sleep:
      return "sleep:" + std::to_string(backoff.sleep_us);
    case BackOff::Kind::quiet:
      break;
  }
  return "quiet";
}

}  // namespace

std::string program_words(const std::vector<std::string>& command_line) {
  if (command_line.empty()) return "";
  const std::string name = file_name(command_line.front());
  if (!name.starts_with("python")) return name;
  const std::string script = script_words(command_line);
  return script.empty() ? name : name + ' ' + script;
}

std::string setting_words(const Config& config) {
  const Config usual;
  std::string words;
  if (config.placement != usual.placement)
    words += ", placement " + placement_words(config.placement);
  if (config.backoff != usual.backoff) words += ", backoff " + words_of(config.backoff);
  if (config.split_levels != usual.split_levels)
    words += ", split " + std::to_string(config.split_levels);
  if (config.one_copy != usual.one_copy)
    words += config.one_copy == OneCopyUse::always ? ", one-copy on" : ", one-copy off";
  if (config.xpmem != usual.xpmem) words += ", xpmem " + config.xpmem;
  return words;
}

}  // namespace weft
