// Describes the machine on which Weft runs, from the beginning of /proc/cpuinfo and a few files of
// /sys.
#include "topo/machine.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace weft {
namespace {

// Reads only the beginning of a file, which is cheap: the kernel generates /proc/cpuinfo while it
// is read.
std::string beginning_of(const char* file_name) {
  std::array<char, 2048> text;
  const int file = open(file_name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  const ssize_t length = read(file, text.data(), text.size());
  close(file);
  return {text.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
}

std::string first_line(const char* file_name) {
  const std::string text = beginning_of(file_name);
  return text.substr(0, text.find('\n'));
}

// Returns the value of a field of /proc/cpuinfo; "" if the field is missing.
std::string field(std::string_view cpuinfo, std::string_view name) {
  const auto at = cpuinfo.find(name);
  if (at == std::string_view::npos) return "";
  const auto colon = cpuinfo.find(": ", at), end = cpuinfo.find('\n', at);
  return colon < end ? std::string(cpuinfo.substr(colon + 2, end - colon - 2)) : "";
}

// Returns the name of the processor; for Arm processors, of which the kernel has no names, the
// kernel's numbers instead.
std::string processor() {
  const std::string cpuinfo = beginning_of("/proc/cpuinfo");
  const std::string model = field(cpuinfo, "model name");
  if (!model.empty()) return model;
  return "CPU " + field(cpuinfo, "CPU implementer") + " " + field(cpuinfo, "CPU part");
}

}  // namespace

std::string numa_nodes() {
  return first_line("/sys/devices/system/node/online");
}

const std::string& machine_words() {
  static const std::string words =
      processor() + ", " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " CPUs, NUMA nodes " +
      numa_nodes() + ", L2 " + first_line("/sys/devices/system/cpu/cpu0/cache/index2/size") +
      ", L3 " + first_line("/sys/devices/system/cpu/cpu0/cache/index3/size");
  return words;
}

}  // namespace weft
