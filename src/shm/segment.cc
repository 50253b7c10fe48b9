// Implements Segment, a memory file (memfd) whose size is sealed. A process that opens it checks
// its identity on the opened descriptor.
#include "shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace weft {
namespace {

static_assert(std::is_trivially_copyable_v<SegmentName>);

// The flag MFD_NOEXEC_SEAL of Linux 6.3, which some systems require.
constexpr unsigned kNoExecSeal = 8;

Error failure(const std::string& what) {
  return {"shared memory: " + what + ": " + std::generic_category().message(errno)};
}

// Descriptor: closes a file descriptor at the end of its scope, unless release() was called.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

std::string path_of(const std::string& process, std::int64_t descriptor) {
  return "/proc/" + process + "/fd/" + std::to_string(descriptor);
}

// Returns the text after "/memfd:" in the target of the memory file's link in /proc.
std::string label(std::uint64_t token) {
  return "weft-" + std::to_string(token);
}

bool same_file(const SegmentName& name, int descriptor) {
  struct stat file;
  return fstat(descriptor, &file) == 0 && S_ISREG(file.st_mode) && file.st_dev == name.device &&
         file.st_ino == name.inode && file.st_size == name.bytes;
}

// Returns the target of a symbolic link in /proc; "" if it cannot be read.
std::string target_of(const std::string& link) {
  std::array<char, 64> target;
  const ssize_t length = readlink(link.c_str(), target.data(), target.size());
  return {target.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
}

std::int64_t whole_pages(std::int64_t bytes) {
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  return (bytes + page - 1) / page * page;
}

int create_memfd(const std::string& text) {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int made = memfd_create(text.c_str(), kFlags | kNoExecSeal);
  if (made >= 0 || errno != EINVAL) return made;
  return memfd_create(text.c_str(), kFlags);
}

// Returns whether a file of this size may be made: growing it beyond RLIMIT_FSIZE would raise a
// signal that ends the program.
bool fits_file_limit(std::int64_t bytes) {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         static_cast<rlim_t>(bytes) <= limit.rlim_cur;
}

}  // namespace

Result<Segment> Segment::create(std::int64_t bytes, Mapped mapped) {
  if (bytes <= 0) return Error{"shared memory: a segment needs at least one byte"};
  SegmentName name{getpid(), -1, whole_pages(bytes), 0, 0, 0};
  if (!fits_file_limit(name.bytes))
    return Error{"shared memory: " + std::to_string(name.bytes) +
                 " bytes are more than the limit of a file's size (ulimit -f) allows"};
  if (getrandom(&name.token, sizeof name.token, 0) != sizeof name.token)
    return failure("no random number");
  Descriptor memory(create_memfd(label(name.token)));
  if (memory.get() < 0) return failure("memfd_create was refused");
  if (ftruncate(memory.get(), name.bytes) != 0)
    return failure("no segment of " + std::to_string(name.bytes) + " bytes");
  // A sealed size protects other processes from SIGBUS. Systems without seals lack this protection.
  fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  struct stat file;
  if (fstat(memory.get(), &file) != 0) return failure("fstat");
  name.device = file.st_dev;
  name.inode = file.st_ino;
  name.descriptor = memory.get();
  auto made = map(name, memory.get(), mapped);
  if (made) made->descriptor_ = memory.release();
  return made;
}

// Opens a segment by its link in /proc. The link is read first, so that a path to a pipe or a
// device is not opened. The descriptor is closed after mapping, since processes may have few.
Result<Segment> Segment::attach(const SegmentName& name, Mapped mapped) {
  const std::string owner = "process " + std::to_string(name.process);
  const std::string path = path_of(std::to_string(name.process), name.descriptor);
  const std::string target = target_of(path);
  if (target.empty())
    return failure("cannot reach the segment of " + owner +
                   ", which has ended or runs in another container or as another user");
  const Error another{"shared memory: what " + owner +
                      " has under that name is another file; is it in another container?"};
  if (!target.starts_with("/memfd:" + label(name.token) + " ")) return another;
  const Descriptor memory(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (memory.get() < 0) return failure("cannot open the segment of " + owner);
  if (!same_file(name, memory.get())) return another;
  return map(name, memory.get(), mapped);
}

// Maps the segment's memory. It maps one page first, and grows the mapping after setting its
// properties: if the process locks all its mappings (mlockall), every page would otherwise be
// allocated at once. The system call is made directly and not by a function that other tools may
// intercept, since no library has seen the page yet.
Result<Segment> Segment::map(const SegmentName& name, int descriptor, Mapped mapped) {
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  const auto failed = [&] {
    return failure("cannot map " + std::to_string(name.bytes) + " bytes");
  };
  void* const first = mmap(nullptr, static_cast<std::size_t>(page), PROT_READ | PROT_WRITE,
                           MAP_SHARED, descriptor, 0);
  if (first == MAP_FAILED) return failed();
  munlock(first, static_cast<std::size_t>(page));
  madvise(first, static_cast<std::size_t>(page), MADV_DONTDUMP);
  Segment made(name, page, static_cast<std::byte*>(first));
  if (mapped == Mapped::first_page || name.bytes == page) return made;
  const long whole = syscall(SYS_mremap, first, page, name.bytes, MREMAP_MAYMOVE);
  if (whole == -1) return failed();
  made.data_ = reinterpret_cast<std::byte*>(whole);
  made.mapped_bytes_ = name.bytes;
  return made;
}

// Maps a part of the segment without a descriptor: mremap() with an old size of 0 maps the same
// memory again, from the first page on. The pages in front of the part are unmapped at once.
std::byte* Segment::map_part(std::int64_t offset, std::int64_t bytes) const {
  // The pages are unlocked, since the application may have locked all mappings (mlockall).
  munlock(data_, static_cast<std::size_t>(mapped_bytes_));
  void* const from_begin =
      mremap(data_, 0, static_cast<std::size_t>(offset + bytes), MREMAP_MAYMOVE);
  if (from_begin == MAP_FAILED) return nullptr;
  if (offset > 0) munmap(from_begin, static_cast<std::size_t>(offset));
  return static_cast<std::byte*>(from_begin) + offset;
}

bool Segment::clear_pages(std::int64_t offset, std::int64_t bytes) const {
  return syscall(SYS_madvise, data_ + offset, bytes, MADV_REMOVE) == 0;
}

// Makes MPI libraries forget what they know of these pages. Those that register memory intercept
// madvise(), and then drop their registrations.
void Segment::forget_pages() const {
  if (!is_private_) madvise(data_, static_cast<std::size_t>(mapped_bytes_), MADV_DONTNEED);
}

Segment::Segment(Segment&& other) noexcept
    : name_(other.name_),
      mapped_bytes_(other.mapped_bytes_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      is_private_(other.is_private_),
      data_(std::exchange(other.data_, nullptr)) {}

Segment& Segment::operator=(Segment other) noexcept {
  std::swap(name_, other.name_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(is_private_, other.is_private_);
  std::swap(data_, other.data_);
  return *this;
}

Segment::~Segment() {
  if (owns_descriptor()) close(descriptor_);
  if (!data_) return;
  if (is_private_)
    syscall(SYS_munmap, data_, mapped_bytes_);
  else
    munmap(data_, static_cast<std::size_t>(mapped_bytes_));
}

// Returns whether descriptor_ still refers to the segment. Programs that close every descriptor may
// have reused the number for a file of theirs, which must not be closed.
bool Segment::owns_descriptor() const {
  return descriptor_ >= 0 && same_file(name_, descriptor_);
}

void Segment::close_to_others() {
  if (owns_descriptor()) close(std::exchange(descriptor_, -1));
}

bool addresses_are_limited() {
  rlimit limit;
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace weft
