// Reads /proc/self/maps, whose lines come in the order of the addresses.
#include "advise/memory_map.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include <cstring>

#include "advise/kernel.h"

namespace weft::advise {
namespace {

char text[16 << 10];

const char* hexadecimal(const char* at, std::uintptr_t* value) {
  for (*value = 0;; ++at) {
    const unsigned digit =
        *at >= 'a' ? static_cast<unsigned>(*at - 'a') + 10 : static_cast<unsigned>(*at - '0');
    if (digit > 15) return at;
    *value = *value * 16 + digit;
  }
}

// Lines of the file, one after the other.
class Lines {
 public:
  Lines() : file_(kernel::direct(SYS_open, reinterpret_cast<long>("/proc/self/maps"), O_RDONLY)) {}
  ~Lines() {
    if (file_ >= 0) kernel::direct(SYS_close, file_);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // nullptr: no more.
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
  Lines lines;
  while (char* line = lines.next()) {
    std::uintptr_t from = 0, to = 0;
    const char* rest = hexadecimal(line, &from);
    rest = hexadecimal(rest + 1, &to);
    if (to <= begin) continue;
    if (from > begin) break;  // a hole
    if (std::strncmp(rest + 1, "rw-p", 4) != 0) return Unknown::not_plain_memory;
    if (std::strstr(rest, "[stack")) return Unknown::on_the_stack;
    begin = to;
    if (begin >= end) return Unknown::none;
  }
  return Unknown::not_plain_memory;
}

}  // namespace weft::advise
