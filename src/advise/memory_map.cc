// Finds out what kind of memory is at an address. Linux 6.11 and later answer a query about one
// mapping through /proc/self/maps. On older kernels the whole file is read; its mappings are sorted
// by address.
#include "advise/memory_map.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/ioctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>

#include "advise/kernel.h"

namespace weft::advise {
namespace {

// The arguments of the kernel's query about one mapping, as <linux/fs.h> of newer kernels defines
// them.
struct Query {
  std::uint64_t size, flags, address;
  std::uint64_t begin, end, kind, page_size, offset, inode;
  std::uint32_t major, minor, name_size, build_id_size;
  std::uint64_t name, build_id;
};
constexpr unsigned long kAsk = _IOWR('f', 17, Query);
constexpr std::uint64_t kReadable = 1, kWritable = 2, kExecutable = 4, kShared = 8;

class Maps {
 public:
  Maps() : file_(kernel::direct(SYS_open, reinterpret_cast<long>("/proc/self/maps"), O_RDONLY)) {}
  ~Maps() {
    if (file_ >= 0) kernel::direct(SYS_close, file_);
  }
  Maps(const Maps&) = delete;
  Maps& operator=(const Maps&) = delete;
  long file() const { return file_; }

 private:
  const long file_;
};

// Asks the kernel whether the pages of the range may be protected, and stores in `answer` what
// plain_memory() must return. Returns false if this kernel does not support the query.
bool ask(const Maps& maps, std::uintptr_t begin, std::uintptr_t end, Unknown* answer) {
  constexpr long kHole = -ENOENT;
  constexpr std::uint64_t kPlain = kReadable | kWritable;
  static char name[PATH_MAX];  // the kernel refuses the query if a file name does not fit
  for (*answer = Unknown::none; begin < end && *answer == Unknown::none;) {
    Query query{};
    query.size = sizeof query;
    query.address = begin;
    query.name = reinterpret_cast<std::uint64_t>(name);
    query.name_size = sizeof name;
    name[0] = '\0';
    const long code = kernel::direct(SYS_ioctl, maps.file(), static_cast<long>(kAsk),
                                     reinterpret_cast<long>(&query));
    if (code != 0 && code != kHole) return false;
    if (code == kHole || (query.kind & (kPlain | kExecutable | kShared)) != kPlain)
      *answer = Unknown::not_plain_memory;
    else if (std::strncmp(name, "[stack", 6) == 0)
      *answer = Unknown::on_the_stack;
    begin = query.end;
  }
  return true;
}

char text[16 << 10];

const char* hexadecimal(const char* at, std::uintptr_t* value) {
  for (*value = 0;; ++at) {
    const unsigned digit =
        *at >= 'a' ? static_cast<unsigned>(*at - 'a') + 10 : static_cast<unsigned>(*at - '0');
    if (digit > 15) return at;
    *value = *value * 16 + digit;
  }
}

// Reads /proc/self/maps line by line.
class Lines {
 public:
  explicit Lines(const Maps& maps) : file_(maps.file()) {}

  // Returns the next line; nullptr at the end.
  char* next() {
    char* end = static_cast<char*>(std::memchr(text + at_, '\n', held_ - at_));
    if (!end && fill()) end = static_cast<char*>(std::memchr(text, '\n', held_));
    if (!end) return nullptr;
    char* const line = text + at_;
    *end = '\0';
    at_ = static_cast<std::size_t>(end - text) + 1;
    return line;
  }

 private:
  bool fill() {
    std::memmove(text, text + at_, held_ - at_);
    held_ -= at_;
    at_ = 0;
    long got = 0;
    while (held_ < sizeof text &&
           (got = kernel::direct(SYS_read, file_, reinterpret_cast<long>(text + held_),
                                 static_cast<long>(sizeof text - held_))) > 0)
      held_ += static_cast<std::size_t>(got);
    return held_ > 0;
  }

  const long file_;
  std::size_t at_ = 0, held_ = 0;
};

}  // namespace

Unknown plain_memory(std::uintptr_t begin, std::uintptr_t end) {
  const Maps maps;
  if (Unknown answer{}; ask(maps, begin, end, &answer)) return answer;
  Lines lines(maps);
  while (char* line = lines.next()) {
    std::uintptr_t from = 0, to = 0;
    const char* rest = hexadecimal(line, &from);
    rest = hexadecimal(rest + 1, &to);
    if (to <= begin) continue;
    if (from > begin) break;  // no memory is mapped at `begin`
    if (std::strncmp(rest + 1, "rw-p", 4) != 0) return Unknown::not_plain_memory;
    if (std::strstr(rest, "[stack")) return Unknown::on_the_stack;
    begin = to;
    if (begin >= end) return Unknown::none;
  }
  return Unknown::not_plain_memory;
}

}  // namespace weft::advise
