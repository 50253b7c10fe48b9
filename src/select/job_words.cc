// What Python takes from its command line, and settings as their options have them.
#include "select/job_words.h"

#include <string_view>

namespace weft {
namespace {

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// The next word belongs to them.
bool takes_a_word(std::string_view option) {
  return option == "-W" || option == "-X" || option == "--check-hash-based-pycs";
}

// A module may run a script in its turn, as in "python3 -m mpi4py app.py". So the first word after
// it that names one counts, else the module itself.
std::string script_words(const std::vector<std::string>& command_line) {
  std::string module;
  for (std::size_t i = 1; i < command_line.size(); ++i) {
    const std::string& word = command_line[i];
    const bool is_option = word.starts_with('-');
    if (module.empty() && (word == "-" || word.starts_with("-c"))) return word.substr(0, 2);
    if (module.empty() && word == "-m") {
      if (++i < command_line.size()) module = command_line[i];
    } else if (module.empty() && takes_a_word(word)) {
      ++i;
    } else if (!is_option && (module.empty() || word.ends_with(".py"))) {
      return file_name(word);
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
    case BackOff::Kind::baton:
      return "baton";
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
