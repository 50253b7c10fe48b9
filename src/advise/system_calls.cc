// Lists the system calls that programs make while they compute, and the memory that each accesses.
// Before any other system call, all buffers are given up, so that a missing entry only loses a
// measurement.
#include "advise/system_calls.h"

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "advise/kernel.h"

namespace weft::advise {
namespace {

constexpr std::size_t kPathBytes = 4096;
constexpr std::size_t kHeap = std::size_t{1} << 36;
constexpr std::size_t kSmall = 256;  // the largest size in bytes of the structures in this file

// Copies bytes from an address that the application passed to a system call. Returns false if the
// address is invalid.
bool copy(long from, void* to, std::size_t bytes) {
  const iovec here{to, bytes}, there{reinterpret_cast<void*>(from), bytes};
  return kernel::direct(SYS_process_vm_readv, kernel::direct(SYS_getpid),
                        reinterpret_cast<long>(&here), 1, reinterpret_cast<long>(&there),
                        1) == static_cast<long>(bytes);
}

class Ranges {
 public:
  Ranges(MemoryVisitor& visitor, bool writes) : visitor_(visitor), writes_(writes) {}

  void add(long begin, std::size_t bytes) {
    if (begin && bytes) visitor_.visit(static_cast<std::uintptr_t>(begin), bytes, writes_);
  }
  Memory vector(long array, long count) {
    iovec parts[kParts];
    if (count < 0 || count > kParts) return Memory::ends;
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(iovec);
    add(array, bytes);
    if (!copy(array, parts, bytes)) return Memory::ends;
    for (long i = 0; i < count; ++i)
      add(reinterpret_cast<long>(parts[i].iov_base), parts[i].iov_len);
    return Memory::known;
  }
  Memory message(long header) {
    msghdr message;
    add(header, sizeof message);
    if (!copy(header, &message, sizeof message)) return Memory::ends;
    add(reinterpret_cast<long>(message.msg_name), message.msg_namelen);
    add(reinterpret_cast<long>(message.msg_control), message.msg_controllen);
    return vector(reinterpret_cast<long>(message.msg_iov), static_cast<long>(message.msg_iovlen));
  }

 private:
  static constexpr long kParts = 64;
  MemoryVisitor& visitor_;
  const bool writes_;
};

#if defined(__x86_64__)
// Returns whether the third argument of fcntl() is a number rather than an address, for this
// command.
bool copies_nothing(long command) {
  switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
    case F_GETFD:
    case F_SETFD:
    case F_GETFL:
    case F_SETFL:
      return true;
    default:
      return false;
  }
}

// Returns whether the system call only reads the memory that it is given.
bool only_reads(long number) {
  switch (number) {
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_pwritev:
    case SYS_sendto:
    case SYS_sendmsg:
      return true;
    default:
      return false;
  }
}
#endif

}  // namespace

#if defined(__x86_64__)

Memory memory_of_call(long number, const long (&a)[6], MemoryVisitor& visitor) {
  Ranges ranges(visitor, !only_reads(number));
  const auto bytes = [](long n) { return n < 0 ? 0 : static_cast<std::size_t>(n); };
  switch (number) {
    case SYS_sched_yield:
    case SYS_getpid:
    case SYS_gettid:
    case SYS_getppid:
    case SYS_getuid:
    case SYS_geteuid:
    case SYS_getgid:
    case SYS_getegid:
    case SYS_close:
    case SYS_lseek:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_dup:
    case SYS_ftruncate:
    case SYS_socket:
    case SYS_shutdown:
    case SYS_listen:
    case SYS_epoll_create1:
    case SYS_eventfd2:
    case SYS_sched_get_priority_max:
    case SYS_sched_get_priority_min:
    case SYS_sync:
      return Memory::known;
    case SYS_read:
    case SYS_write:
    case SYS_pread64:
    case SYS_pwrite64:
      ranges.add(a[1], bytes(a[2]));
      return Memory::known;
    case SYS_sendto:
    case SYS_recvfrom:
      ranges.add(a[1], bytes(a[2]));
      ranges.add(a[4], kSmall);
      ranges.add(a[5], sizeof(int));
      return Memory::known;
    case SYS_fcntl:
      return copies_nothing(a[1]) ? Memory::known : Memory::ends;
    case SYS_ioctl:  // libraries ask in this way whether a file is a terminal
      ranges.add(a[2], kSmall);
      return a[1] == TCGETS ? Memory::known : Memory::ends;
    case SYS_readv:
    case SYS_writev:
    case SYS_preadv:
    case SYS_pwritev:
      return ranges.vector(a[1], a[2]);
    case SYS_sendmsg:
    case SYS_recvmsg:
      return ranges.message(a[1]);
    case SYS_getrandom:
      ranges.add(a[0], bytes(a[1]));
      return Memory::known;
    case SYS_clock_gettime:
    case SYS_clock_getres:
    case SYS_getrusage:
    case SYS_fstat:
      ranges.add(a[1], kSmall);
      return Memory::known;
    case SYS_gettimeofday:
    case SYS_nanosleep:
      ranges.add(a[0], sizeof(timespec));
      ranges.add(a[1], sizeof(timespec));
      return Memory::known;
    case SYS_time:
    case SYS_times:
      ranges.add(a[0], kSmall);
      return Memory::known;
    case SYS_clock_nanosleep:
      ranges.add(a[2], sizeof(timespec));
      ranges.add(a[3], sizeof(timespec));
      return Memory::known;
    case SYS_futex:
      ranges.add(a[0], sizeof(int));
      // The fourth argument of futex() is the address of a timeout; in some operations it is a
      // small count instead.
      ranges.add(a[3] > 4096 ? a[3] : 0, sizeof(timespec));
      ranges.add(a[4], sizeof(int));
      return Memory::known;
    case SYS_poll:
      ranges.add(a[0], bytes(a[1]) * sizeof(pollfd));
      return Memory::known;
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
      ranges.add(a[1], bytes(a[2]) * sizeof(epoll_event));
      return number == SYS_epoll_pwait && a[4] ? Memory::ends : Memory::known;
    case SYS_epoll_ctl:
      ranges.add(a[3], sizeof(epoll_event));
      return Memory::known;
    case SYS_sched_getaffinity:
      ranges.add(a[2], bytes(a[1]));
      return Memory::known;
    case SYS_open:
    case SYS_access:
    case SYS_unlink:
    case SYS_rmdir:
    case SYS_mkdir:
    case SYS_chdir:
      ranges.add(a[0], kPathBytes);
      return Memory::known;
    case SYS_openat:
    case SYS_unlinkat:
    case SYS_faccessat:
      ranges.add(a[1], kPathBytes);
      return Memory::known;
    case SYS_stat:
    case SYS_lstat:
      ranges.add(a[0], kPathBytes);
      ranges.add(a[1], sizeof(struct stat));
      return Memory::known;
    case SYS_newfstatat:
      ranges.add(a[1], kPathBytes);
      ranges.add(a[2], sizeof(struct stat));
      return Memory::known;
    case SYS_munmap:
    case SYS_madvise:
    case SYS_mremap:
    case SYS_mprotect:
    case SYS_msync:
      ranges.add(a[0], bytes(a[1]));
      return number == SYS_mremap ? Memory::ends : Memory::known;
    case SYS_brk:  // may release memory above the new end
      ranges.add(a[0], kHeap);
      return Memory::known;
    case SYS_mmap:
      return (a[3] & 0x10) != 0 ? Memory::ends : Memory::known;  // the flag MAP_FIXED
    default:
      return Memory::ends;
  }
}

#else

Memory memory_of_call(long, const long (&)[6], MemoryVisitor&) {
  return Memory::ends;
}

#endif

}  // namespace weft::advise
