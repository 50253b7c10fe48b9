#include "advise/findings.h"

#include <limits.h>
#include <unistd.h>

#include <cstdio>
#include <set>
#include <string>
#include <string_view>

namespace weft::advise {

namespace {

std::FILE* file = nullptr;
int own_rank = 0;
std::string program;

std::string columns(const Line& line) {
  return std::string(line.place.file) + '\t' + std::to_string(line.place.offset) + '\t' +
         line.where;
}

}  // namespace

void findings_begin(const char* directory, int rank) {
  char path[PATH_MAX] = "";
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length > 0) program.assign(path, static_cast<std::size_t>(length));
  file = std::fopen((std::string(directory) + "/check-" + std::to_string(rank)).c_str(), "we");
  own_rank = rank;
}

bool findings_go() {
  return file != nullptr;
}

int finding_rank() {
  return own_rank;
}

Line line_of(const Place& place) {
  Line line{.place = place};
  if (!line.place.file[0])
    std::snprintf(line.place.file, sizeof line.place.file, "%s", program.c_str());
  return line;
}

Line line_of(CallId call, const Caller& caller) {
  Line line = line_of(place_of(caller.address));
  line.where = caller.where;
  line.call = call_name(call);
  return line;
}

std::uint64_t key_of_line(CallId call, const Caller& caller) {
  const std::uint64_t place =
      caller.where[0] ? std::hash<std::string_view>{}(caller.where) : caller.address;
  std::uint64_t key = (place + static_cast<std::uint64_t>(call)) * UINT64_C(0x9e3779b97f4a7c15);
  key ^= key >> 32;
  return key | UINT64_C(1) << 63;
}

void tell(const char* rule, int rank, const Line& start, const Line& other, const char* detail) {
  // The set is never destroyed, since this function may be called while the process exits.
  static auto& told = *new std::set<std::string>;
  const std::string mistake =
      std::string(start.call) + '\t' + columns(start) + '\t' + columns(other) + '\t' + other.call;
  if (!file || !told.insert(rule + mistake).second) return;
  std::fprintf(file, "%s\t%d\t%s\t%s\n", rule, rank, mistake.c_str(), detail);
  std::fflush(file);
}

}  // namespace weft::advise
