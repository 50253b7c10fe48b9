// Implements the `weft` command. It carries out `run` itself, and the part of `advise` that starts
// a rank. `schedule` is a separate program, and Python does the rest. `weft run` is native code,
// because it starts once per rank, and Python would be slow to start on thousands of ranks from a
// shared file system.
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "launch/advise.h"
#include "launch/run.h"

namespace {

std::string own_path() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "";
}

int become_part(const std::string& path, const std::vector<const char*>& arguments) {
  if (access(path.c_str(), X_OK) != 0) {
    std::fprintf(stderr,
                 "weft: %s is missing; use the command of an installation, such as .venv/bin/weft "
                 "after make build\n",
                 path.c_str());
    return 2;
  }
  std::vector<const char*> command = {path.c_str()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.push_back(nullptr);
  return weft::launch::become(path, command.data());
}

// Returns the path of the program weft-schedule: in the directories of an installation, or beside
// this command in a build tree.
std::string schedule_printer(const std::string& directory) {
  const std::string installed = directory + "../libexec/weft/weft-schedule";
  return access(installed.c_str(), X_OK) == 0 ? installed : directory + "weft-schedule";
}

}  // namespace

int main(int argc, char** argv) {
  const std::string self = own_path();
  if (self.empty()) {
    std::fputs("weft: cannot find its own place: /proc is not mounted\n", stderr);
    return 2;
  }
  const std::string directory = self.substr(0, self.rfind('/') + 1);
  const std::string_view verb = argc > 1 ? argv[1] : "--help";
  if (verb == "run") return weft::launch::run(self, argc - 2, argv + 2);
  if (verb == "advise")
    if (const auto status = weft::launch::advise(self, argc - 2, argv + 2)) return *status;
  // If weft-schedule does not exist, as in a source tree, Python builds it.
  const std::string printer = schedule_printer(directory);
  if (verb == "schedule" && access(printer.c_str(), X_OK) == 0)
    return become_part(printer, {argv + 2, argv + argc});
  std::vector<const char*> arguments = {"--help"};
  if (argc > 1) arguments.assign(argv + 1, argv + argc);
  return become_part(directory + "weft-python", arguments);
}
