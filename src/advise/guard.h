// A guard watches a buffer of a collective call, and measures one of two intervals. For a receive
// buffer (result), this is the time from the return of the call to the program's first access. For
// a send buffer, it is the time from the program's last write to the call.
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

// Begins to watch the receive buffer of the latest call at this call site. If that is impossible,
// counts the reason there. may_share: whether pages may be protected that also hold other memory,
// which is safe only if nobody but the program's own threads uses them.
void guard_result(Site& site, const void* begin, std::size_t bytes, bool may_share);
// Begins to watch the send buffer of the latest call at this call site, since the next call may
// send it again. If that is impossible, counts the reason there. may_share: whether pages may be
// protected that also hold other memory.
void guard_sent(Site& site, const void* begin, std::size_t bytes, bool may_share);
// Watches a buffer of an operation in flight until end_flight(). flight: the operation's number,
// from 1. read_only: true to report only writes to the buffer, false to report all accesses.
void guard_flight(int flight, const void* begin, std::size_t bytes, bool read_only);
void end_flight(int flight);
// Says that the program's only thread has been inside MPI since the time `began_ns`, so that it has
// not written any send buffer since then.
void nothing_written_since(std::int64_t began_ns);
// Returns whether the budget allows another guard of `bytes` bytes, and leaves `kept_ns` of it.
bool guard_affordable(std::size_t bytes, std::int64_t kept_ns = 0);
// Returns whether the budget is unlimited.
bool guard_always();
// Records the interval from the last write of a send buffer to the call that started at `when_ns`.
// site: the place of the call.
void add_before(Site& site, const Unwritten& found, std::int64_t when_ns);

// touch_now() returns a copy of an entry, taken under the lock of class Locked. have_place() stores
// in an entry the place in the program of its instruction, unless the entry now belongs to another
// instruction, whose address differs from `address`.
Touch touch_now(const Touch& touch);
void have_place(Touch& touch, std::uint64_t address, std::uint64_t offset, std::uint32_t module);
// Stops watching all buffers, without a measurement. why: the reason, which is counted.
void release_all_guards(Unknown why);
// Stops watching buffers that share pages with other memory. It must be called when a non-blocking
// operation begins, since other ranks may then access such memory at any time.
void operation_begins();
// Stops watching all buffers, and removes the advisor's signal handlers, if the advisor uses this
// signal. It must be called before the application sets or queries the handler of a signal.
void application_sets_handler(int signal);
// Pause and resume the advisor's thread that protects pages of send buffers. fork_begins() must be
// called before a fork, and fork_ended() after it in the parent.
void fork_begins();
void fork_ended();
// Stops watching all buffers, and releases the lock of class Locked, whose holder may not exist in
// a forked child. It must be called in the child after a fork.
void guards_in_child();
// Notes that the application passes a buffer to MPI, which counts as an access to watched buffers
// that overlap it. bytes: its size; SIZE_MAX if unknown. writes: whether MPI may write the buffer.
// call: the instruction that calls MPI.
void given_to_mpi(const void* begin, std::size_t bytes, bool writes, Instruction call);
// Stops watching a send buffer that the application passes to MPI at time `when_ns`. Returns bounds
// on the time since the program last wrote the buffer; nullopt if it was not watched.
std::optional<Unwritten> sent_by_mpi(const void* begin, std::size_t bytes, std::int64_t when_ns);

// Returns true if it need not be recorded that this thread enters MPI: it is the only thread, no
// buffer is watched, and its system calls are not redirected to the advisor.
inline bool nobody_looks() {
  const Thread* const me = this_record();
  return !me || (live.load(std::memory_order_relaxed) == 0 &&
                 !me->dispatched.load(std::memory_order_relaxed) &&
                 !several.load(std::memory_order_relaxed));
}
// Record that this thread enters or leaves MPI. System calls that are made inside MPI belong to the
// MPI library, so they are not redirected to the advisor. Pages that hold other memory besides a
// watched buffer are accessible meanwhile.
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

// Returns the time in ns that watching buffers has taken so far.
std::int64_t guarding_ns();

}  // namespace weft::advise
