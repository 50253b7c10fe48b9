// Guards measure two intervals: from the return of a collective to the program's first access to
// its receive buffer (the result), and from the program's last write into its send buffer to the
// call.
//
// After the call, the pages of a receive buffer are protected by mprotect(). The first access by
// any thread or system call raises a signal, makes the pages accessible again, and ends the
// interval. Receive buffers of at most 8 bytes are watched by a hardware breakpoint instead. The
// pages of a send buffer are protected against writes. A write makes them writable, and a thread of
// the advisor protects them again, until the next call sends them. If watching would not be safe,
// the guard ends without a measurement before it can change the program's behaviour.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "advise/guard_slots.h"
#include "advise/record.h"
#include "advise/threads.h"
#include "base/left_calls.h"

namespace weft::advise {

// Prepares this process for guards. Must be called once, in MPI_Init. overhead: the share of the
// run time that guards may take; 0: none are set. intervals: whether intervals are measured, which
// needs breakpoints and the cost of an observation.
void guards_begin(double overhead, bool intervals);
// Returns the reason why no guards are set in this process; Unknown::none if they are set.
Unknown guards_off();

// Bounds in ns on the time since a buffer was last written, and the instruction that wrote it.
struct Unwritten {
  Bounds bounds;
  Instruction writer;
};

// Begins to watch the receive buffer of the latest call at `site`. If that is impossible, counts
// the reason at the site. may_share: whether pages that also hold other memory may be protected,
// which is safe only if nobody but the program's own threads uses them.
void guard_result(Site& site, const void* begin, std::size_t bytes, bool may_share);
// Begins to watch the send buffer of the latest call at `site`, since the next call may send it
// again. If that is impossible, counts the reason at the site. may_share: as in guard_result().
void guard_sent(Site& site, const void* begin, std::size_t bytes, bool may_share);
// Watches a buffer of an operation in flight until end_flight(). flight: the operation's number,
// from 1. read_only: true to report only writes to the buffer, false to report all accesses.
void guard_flight(int flight, const void* begin, std::size_t bytes, bool read_only);
void end_flight(int flight);
// Says that the program's only thread has been inside MPI since the time `began_ns`. Send buffers
// are therefore known to be unwritten since that time.
void nothing_written_since(std::int64_t began_ns);
// Returns whether the budget allows another guard of `bytes` bytes, and leaves `kept_ns` of it.
bool guard_affordable(std::size_t bytes, std::int64_t kept_ns = 0);
// Returns whether the budget is unlimited.
bool guard_always();
// Records the interval from the last write of a send buffer to the call at `site` that started at
// `when_ns`.
void add_before(Site& site, const Unwritten& found, std::int64_t when_ns);

// touch_now() returns a copy of an entry, taken with the guards' lock held. have_place() stores in
// an entry the place in the program of its instruction, unless the entry now belongs to another
// instruction (another `address`).
Touch touch_now(const Touch& touch);
void have_place(Touch& touch, std::uint64_t address, std::uint64_t offset, std::uint32_t module);
// Ends all guards without a measurement. why: the reason, which is counted.
void release_all_guards(Unknown why);
// Must be called when a non-blocking operation begins. From then on, other ranks may access memory
// of this process on pages that guards protect; such guards end.
void operation_begins();
// Ends all guards and removes the advisor's handler if the signal is one that guards use. It must
// be called before the application sets or queries the handler of this signal.
void application_sets_handler(int signal);
// Pause and resume the thread that protects pages again. fork_begins() must be called before a
// fork, and fork_ended() after it in the parent.
void fork_begins();
void fork_ended();
// Ends all guards and releases their lock, since no other thread exists in a forked child. It must
// be called in the child after a fork.
void guards_in_child();
// Must be called when the application passes a buffer to MPI. bytes: the size; SIZE_MAX if unknown.
// writes: whether MPI may write the buffer. call: the instruction that calls MPI.
void given_to_mpi(const void* begin, std::size_t bytes, bool writes, Instruction call);
// Must be called when the application passes this send buffer to MPI at time `when_ns`. Returns
// bounds on the time since the program last wrote the buffer; nothing if it was not watched.
std::optional<Unwritten> sent_by_mpi(const void* begin, std::size_t bytes, std::int64_t when_ns);

// Returns true if entering MPI need not be recorded for this thread: it is the only thread, no
// guard exists, and its system calls are not redirected to the advisor.
inline bool nobody_looks() {
  const Thread* const me = this_record();
  return !me || (live.load(std::memory_order_relaxed) == 0 &&
                 !me->dispatched.load(std::memory_order_relaxed) &&
                 !several.load(std::memory_order_relaxed));
}
// Record that this thread enters or leaves MPI. System calls that are made inside MPI belong to the
// MPI library, so they are not redirected. Pages that hold other memory besides a watched buffer
// are accessible meanwhile.
void enter_mpi();
void leave_mpi();
// Calls enter_mpi() and leave_mpi() around an MPI call, even if the call is left by longjmp() or an
// exception.
class InMpi final : public Cleanup {
 public:
  constexpr InMpi() = default;
  void begin() {
    enter_mpi();
    Cleanup::begin();
  }
  void end() {
    Cleanup::end();
    leave_mpi();
  }

 private:
  void clean_up() override { leave_mpi(); }
};
inline constinit thread_local InMpi in_mpi __attribute__((tls_model("initial-exec")));

// Returns the time in ns that guards have taken so far.
std::int64_t guarding_ns();

}  // namespace weft::advise
