// Sets hardware breakpoints by the system call perf_event_open, without the C library.
#include "advise/breakpoints.h"

#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

#include "advise/kernel.h"

namespace weft::advise {
namespace {

// Replaces a file descriptor by one with a high number, and returns that. The low numbers stay free
// for the application's own files.
int moved_up(int descriptor) {
  constexpr long kFirst = 900;
  const long moved = kernel::direct(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, kFirst);
  if (moved < 0) return descriptor;
  kernel::direct(SYS_close, descriptor);
  return static_cast<int>(moved);
}

}  // namespace

int breakpoint_on(std::uintptr_t begin, std::size_t bytes) {
  perf_event_attr wanted{};
  wanted.size = sizeof wanted;
  wanted.type = PERF_TYPE_BREAKPOINT;
  wanted.bp_type = HW_BREAKPOINT_RW;
  wanted.bp_addr = begin;
  wanted.bp_len = bytes;
  wanted.sample_period = 1;
  wanted.exclude_kernel = 1;
  wanted.exclude_hv = 1;
  wanted.remove_on_exec = 1;
  wanted.sigtrap = 1;
  wanted.sig_data = begin;
  const long opened = kernel::direct(SYS_perf_event_open, reinterpret_cast<long>(&wanted), 0, -1,
                                     -1, PERF_FLAG_FD_CLOEXEC);
  return opened < 0 ? -1 : moved_up(static_cast<int>(opened));
}

// Opens an event that counts nothing, and keeps it until the process ends. The first event on a
// machine makes the kernel wait for all cores, which takes 8 to 130 ms. Further events take
// microseconds as long as any event exists.
void keep_an_event() {
  perf_event_attr wanted{};
  wanted.size = sizeof wanted;
  wanted.type = PERF_TYPE_SOFTWARE;
  wanted.config = PERF_COUNT_SW_DUMMY;
  wanted.exclude_kernel = 1;
  wanted.exclude_hv = 1;
  const long opened = kernel::direct(SYS_perf_event_open, reinterpret_cast<long>(&wanted), 0, -1,
                                     -1, PERF_FLAG_FD_CLOEXEC);
  if (opened >= 0) moved_up(static_cast<int>(opened));
}

bool fits_breakpoint(std::uintptr_t begin, std::size_t bytes) {
  return (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && begin % bytes == 0;
}

}  // namespace weft::advise
