#include "launch/job_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/first_rank.h"
#include "base/started.h"
#include "launch/launcher.h"

namespace weft::launch {
namespace {

using Words = std::vector<std::string>;

// The launcher is searched among this number of ancestors of a rank's process.
constexpr int kMostAbove = 8;

bool is_weft(const std::string& word) {
  return word.substr(word.rfind('/') + 1) == "weft";
}

std::string in_quotes(const std::string& word) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

Words words_of(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/cmdline", std::ios::binary);
  Words words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

// Returns the ID of a process's parent; 0 if the process has no parent or has ended.
int parent_of(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto behind_name = text.rfind(')');
  int parent = 0;
  char state = 0;
  if (behind_name == std::string::npos ||
      std::sscanf(text.c_str() + behind_name + 1, " %c %d", &state, &parent) != 2)
    return 0;
  return parent;
}

// Returns the command line of the launcher that started this rank; an empty list if none of the
// process's ancestors is a launcher.
Words launcher_above() {
  int process = getppid();
  for (int i = 0; i < kMostAbove && process > 1; ++i, process = parent_of(process)) {
    Words words = words_of(process);
    if (!words.empty() && launcher_of_command(words[0]) != Launcher::none) return words;
  }
  return {};
}

}  // namespace

std::string typed_without_weft(const Words& words) {
  std::string line;
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (is_weft(*word) && word + 1 != words.end() && word[1] == "run") {
      word = std::find(word, words.end(), "--");
      if (word == words.end()) return "";
      continue;
    }
    line += (line.empty() ? "" : " ") + in_quotes(*word);
  }
  return line;
}

void tell_job_command(const Words& started) {
  if (const char* before = std::getenv(kCommandVariable); before && *before) return;
  if (!is_first_rank()) return;
  const Words words = launched_rank() ? launcher_above() : started;
  if (const std::string line = typed_without_weft(words); !line.empty())
    setenv(kCommandVariable, line.c_str(), 1);
}

}  // namespace weft::launch
