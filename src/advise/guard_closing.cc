// Decides when the pages of send buffers are protected again, and runs the thread that does it.
#include "advise/guard_closing.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

namespace weft::advise {
namespace {

std::atomic<bool> forking{false};

// Protects the pages of a written send buffer again. If a thread is inside MPI, leaves that to the
// last thread that leaves MPI. Returns false if the system refuses.
bool close_again(Guard& guard) {
  constexpr std::int64_t kCosts = 2;
  const std::int64_t began_ns = now_ns();
  const bool in_mpi = any_in_mpi();
  const bool done = in_mpi || protect_shared(guard, guard.closed());
  is_closed(guard, now_ns());
  guard.pause_ns = std::max(guard.pause_ns, kCosts * (guard.closed_ns - began_ns));
  if (in_mpi) misses(guard);
  return done;
}

bool stack_near(const Guard& guard) {
  for (const Thread& thread : known_threads())
    if (thread.used && guard.near_stack(thread.stack_in_use)) return true;
  return false;
}

// Protects the pages of all send buffers whose time has come. Returns the time on the clock, in ns,
// at which the next one is due; INT64_MAX if none is. The lock of class Locked must be held.
std::int64_t close_due() {
  std::int64_t next_ns = INT64_MAX;
  for (Guard& guard : guards) {
    if (!guard.live || !guard.open) continue;
    if (guard.due_ns() > now_ns())
      next_ns = std::min(next_ns, guard.due_ns());
    else if (stack_near(guard))
      unseen(guard, Unknown::on_the_stack);
    else if (is_overspent())
      unseen(guard, Unknown::budget);
    else if (!close_again(guard))
      unseen(guard, Unknown::not_plain_memory);
  }
  return next_ns;
}

// Returns the CPU time of this thread in ns.
std::int64_t own_ns() {
  return processor_ns(CLOCK_THREAD_CPUTIME_ID);
}

}  // namespace

// Sets the times at which the pages of a written send buffer are protected again. At first they are
// protected so often that any interval between two calls is measured well. Later times follow from
// the previous interval: it tells when the last write is to be expected, and how exactly that must
// be known.
void plan_closing(Guard& guard) {
  constexpr std::int64_t kParts = 128, kLeast = 20'000;
  const std::int64_t again = guard.site->again_ns, quiet = guard.site->quiet_ns;
  const std::int64_t gap = again ? again : guard.site->gap_ns;
  guard.pause_ns = std::max(kLeast, (quiet ? quiet : gap) / kParts);
  guard.not_before_ns = quiet ? guard.set_ns + gap - quiet - quiet / 4 : 0;
}

// The function of the advisor's thread that protects the pages of send buffers again. The thread
// sleeps until a send buffer has been written. Each time that it wakes, it costs the application
// about twice the CPU time that this thread itself uses, because of two context switches (25 us
// compared with 13 us; virtual machine, 2 cores, AMD EPYC). Only the time outside of the lock is
// counted here; class Locked counts the rest.
void close_what_was_written() {
  for (std::int64_t slept_ns = own_ns();;) {
    constexpr std::int64_t kLater = 1'000'000;
    const std::uint32_t rung = bell.load();
    std::int64_t next_ns = now_ns() + kLater;
    closing = true;
    const std::int64_t woken_ns = own_ns();
    if (!forking.load()) {
      const Locked locked;
      next_ns = close_due();
    }
    spent_ns.fetch_add(2 * (woken_ns - slept_ns), std::memory_order_relaxed);
    slept_ns = own_ns();
    closing = false;
    const timespec until{next_ns / 1'000'000'000, next_ns % 1'000'000'000};
    kernel::direct(SYS_futex, reinterpret_cast<long>(&bell), FUTEX_WAIT_BITSET_PRIVATE, rung,
                   next_ns == INT64_MAX ? 0 : reinterpret_cast<long>(&until), 0,
                   static_cast<long>(FUTEX_BITSET_MATCH_ANY));
  }
}

void closing_pauses(bool yes) {
  forking = yes;
  while (yes && closing.load()) yield();
}

}  // namespace weft::advise
