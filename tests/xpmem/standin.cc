// A stand-in for libxpmem, for machines without the kernel module. It attaches memory of another
// process of the same user if this memory is mapped from memory files (memfd_create) that the
// process has open. All other memory is refused. With the real module, an attachment follows what
// its owner unmaps and maps. Here that happens in xpmem_standin_follow(), which a test calls on all
// ranks when one has changed its memory. XPMEM_STANDIN_ATTACHMENTS: most attachments that this
// process may have at one time.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#define STANDIN_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Address {
  std::int64_t permit, offset;
};

// Pages of a process that are mapped from a file.
struct Pages {
  std::uintptr_t begin, end;
  off_t offset;
  dev_t device;
  ino_t inode;
};

struct Attached {
  std::int64_t process;
  std::uintptr_t begin;  // address in the owner
  std::size_t bytes;
};

std::mutex mutex;  // guards `attached`
// By address in this process. Never destroyed, since programs detach while they exit.
std::map<std::byte*, Attached>& attached = *new std::map<std::byte*, Attached>;

std::string in_proc(std::int64_t process, const std::string& what) {
  return "/proc/" + std::to_string(process) + "/" + what;
}

// The mappings that a process now has of shared files, and these files.
class Mapped {
 public:
  explicit Mapped(std::int64_t process) : descriptors_(in_proc(process, "fd")) {
    std::ifstream maps(in_proc(process, "maps"));
    for (std::string line; std::getline(maps, line);) {
      unsigned long first, last, offset, inode;
      unsigned major, minor;
      char access[5];
      const int read = std::sscanf(line.c_str(), "%lx-%lx %4s %lx %x:%x %lu", &first, &last, access,
                                   &offset, &major, &minor, &inode);
      if (read == 7 && access[3] == 's' && inode != 0)
        pages_.push_back({first, last, static_cast<off_t>(offset), makedev(major, minor), inode});
    }
  }
  ~Mapped() {
    for (const auto& [inode, file] : files_)
      if (file >= 0) close(file);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  std::vector<Pages> pages_in(std::uintptr_t begin, std::uintptr_t end) const {
    std::vector<Pages> inside;
    for (Pages pages : pages_) {
      if (pages.end <= begin || pages.begin >= end) continue;
      const std::uintptr_t from = std::max(pages.begin, begin);
      pages.offset += static_cast<off_t>(from - pages.begin);
      pages.begin = from;
      pages.end = std::min(pages.end, end);
      inside.push_back(pages);
    }
    return inside;
  }

  bool map(const Pages& pages, std::byte* at) {
    const int file = file_of(pages);
    return file >= 0 && mmap(at, pages.end - pages.begin, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_FIXED, file, pages.offset) != MAP_FAILED;
  }

 private:
  // Returns a descriptor of the file; -1 if the process no longer has it open.
  int file_of(const Pages& pages) {
    const auto [file, is_new] = files_.try_emplace(pages.inode, -1);
    if (is_new) file->second = open_file(pages);
    return file->second;
  }
  int open_file(const Pages& pages) const {
    DIR* const all = opendir(descriptors_.c_str());
    int found = -1;
    while (const dirent* entry = all && found < 0 ? readdir(all) : nullptr) {
      const std::string path = descriptors_ + "/" + entry->d_name;
      struct stat file;
      if (stat(path.c_str(), &file) == 0 && file.st_ino == pages.inode &&
          file.st_dev == pages.device)
        found = open(path.c_str(), O_RDWR | O_CLOEXEC);
    }
    if (all) closedir(all);
    return found;
  }

  const std::string descriptors_;
  std::vector<Pages> pages_;
  std::map<ino_t, int> files_;  // -1 if it cannot be opened
};

// Reserves inaccessible addresses. hint: nullptr, or the address at which they replace existing
// mappings.
std::byte* without_access(std::byte* hint, std::size_t bytes) {
  const int fixed = hint ? MAP_FIXED : 0;
  void* at = mmap(hint, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

// Maps all pages. Pages that stay the same remain mapped all the time, since operations may be
// using them. Returns whether all could be mapped.
bool map_all(std::byte* here, const Attached& of, Mapped& owner) {
  std::uintptr_t done = of.begin;
  bool whole = true;
  const auto leave_out = [&](std::uintptr_t end) {
    if (end == done) return;
    without_access(here + (done - of.begin), end - done);
    whole = false;
  };
  for (const Pages& pages : owner.pages_in(of.begin, of.begin + of.bytes)) {
    leave_out(pages.begin);
    done = pages.begin;
    if (owner.map(pages, here + (pages.begin - of.begin))) done = pages.end;
  }
  leave_out(of.begin + of.bytes);
  return whole;
}

bool may_attach() {
  const char* most = std::getenv("XPMEM_STANDIN_ATTACHMENTS");
  return !most || attached.size() < std::strtoul(most, nullptr, 10);
}

}  // namespace

STANDIN_EXPORT std::int64_t xpmem_make(void*, std::size_t, int, void*) {
  return getpid();
}

STANDIN_EXPORT std::int64_t xpmem_get(std::int64_t segment, int, int, void*) {
  return access(in_proc(segment, "maps").c_str(), R_OK) == 0 ? segment : -1;
}

STANDIN_EXPORT void* xpmem_attach(Address from, std::size_t bytes, void*) {
  const std::lock_guard lock(mutex);
  const Attached asked{from.permit, static_cast<std::uintptr_t>(from.offset), bytes};
  std::byte* const here = may_attach() ? without_access(nullptr, bytes) : nullptr;
  Mapped owner(from.permit);
  if (here && map_all(here, asked, owner)) {
    attached[here] = asked;
    return here;
  }
  if (here) munmap(here, bytes);
  return reinterpret_cast<void*>(-1);
}

STANDIN_EXPORT int xpmem_detach(void* begin) {
  const std::lock_guard lock(mutex);
  const auto found = attached.find(static_cast<std::byte*>(begin));
  if (found == attached.end()) return -1;
  munmap(begin, found->second.bytes);
  attached.erase(found);
  return 0;
}

STANDIN_EXPORT void xpmem_standin_follow() {
  const std::lock_guard lock(mutex);
  std::map<std::int64_t, Mapped> owners;
  for (const auto& [here, of] : attached)
    map_all(here, of, owners.try_emplace(of.process, of.process).first->second);
}
