// The `weft` command: `run` is done here, `schedule` by its own program, the rest by Python.
// Why: `weft run` starts once per rank, on thousands of ranks from a shared file system.
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "launch/run.h"

namespace {

std::string own_path() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "";
}

int become_neighbour(const std::string& directory, const char* name,
                     std::vector<const char*> command, const char* remedy) {
  const std::string path = directory + name;
  if (access(path.c_str(), X_OK) != 0) {
    std::fprintf(stderr, "weft: %s is missing; %s\n", path.c_str(), remedy);
    return 2;
  }
  command.insert(command.begin(), path.c_str());
  command.push_back(nullptr);
  return weft::launch::become(path, command.data());
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
  if (verb == "schedule")
    return become_neighbour(directory, "weft-schedule", {argv + 2, argv + argc},
                            "build it with: make build");
  // Isolated, so that a directory named weft where the user works is not taken for the package.
  std::vector<const char*> command = {"-I", "-m", "weft"};
  if (argc > 1)
    command.insert(command.end(), argv + 1, argv + argc);
  else
    command.push_back("--help");
  return become_neighbour(directory, "python", command,
                          "use the command that `make build` leaves in .venv/bin");
}
