// Finds out how much memory is available, from /proc/meminfo and from memory.max and memory.current
// of the process's control groups (version 2).
#include "shm/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace weft {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

std::int64_t of_the_system() {
  std::ifstream file("/proc/meminfo");
  std::string field, unit;
  std::int64_t value_KiB = 0;
  while (file >> field >> value_KiB) {
    if (field == "MemAvailable:") return value_KiB * 1024;
    std::getline(file, unit);
  }
  return kNoLimit;
}

// Returns the number that a file contains; `otherwise` if there is no such file, or if it contains
// "max", which means no limit.
std::int64_t number_in(const std::string& path, std::int64_t otherwise) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? value : otherwise;
}

// Returns the path of this process's control group below the root, such as "/user.slice/job"; empty
// if it is unknown.
std::string own_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::/")) return line.substr(3);
  return "";
}

std::int64_t of_the_groups() {
  std::int64_t least = kNoLimit;
  for (std::string group = own_group(); !group.empty(); group.resize(group.rfind('/'))) {
    const std::string directory = "/sys/fs/cgroup" + group + "/memory.";
    const std::int64_t most = number_in(directory + "max", kNoLimit);
    if (most != kNoLimit) least = std::min(least, most - number_in(directory + "current", 0));
  }
  return std::max<std::int64_t>(least, 0);
}

}  // namespace

std::int64_t available_memory_bytes() {
  return std::min(of_the_system(), of_the_groups());
}

}  // namespace weft
