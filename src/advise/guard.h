// Guards measure the time from a collective's return to the first access to its result, and from
// the last write of its send buffer to the call. After the call has completed, the pages of the
// result are closed (mprotect). The first access, by any thread or system call, opens them again
// and ends the interval. Results of at most 8 bytes are watched by a hardware breakpoint instead.
// Pages of send buffers are closed for writes. A write opens them, and a thread of the advisor
// closes them again, until the next call that sends them. If an observation would not be safe, the
// guard ends as "unknown" before it can change the program's behaviour.
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

// Watches the result of the site's call from now on, or records why that is impossible. may_share:
// the result's pages may hold other memory too, since only this program's own threads use it.
void guard_result(Site& site, const void* begin, std::size_t bytes, bool may_share);
// Watches the buffer that the site's call has sent, which its next call may send again, or records
// why that is impossible. may_share: as in guard_result().
void guard_sent(Site& site, const void* begin, std::size_t bytes, bool may_share);
// Watches a buffer of an operation in flight until end_flight(). read_only: if true, only writes
// are reported; if false, all accesses.
void guard_flight(int flight, const void* begin, std::size_t bytes, bool read_only);
void end_flight(int flight);
// Says that the program's only thread has been inside MPI since `began_ns`. Send buffers are closed
// as of that time when the call returns.
void nothing_written_since(std::int64_t began_ns);
// Returns whether the budget allows another guard of `bytes` bytes, and leaves `kept_ns` of it.
bool guard_affordable(std::size_t bytes, std::int64_t kept_ns = 0);
// Returns whether the budget is unlimited.
bool guard_always();
// Records an interval before the call that started at `when_ns`.
void add_before(Site& site, const Unwritten& found, std::int64_t when_ns);

// touch_now() returns the current state of a record of accesses by one instruction. have_place()
// stores that instruction's place in the program, unless the entry now belongs to another
// instruction.
Touch touch_now(const Touch& touch);
void have_place(Touch& touch, std::uint64_t address, std::uint64_t offset, std::uint32_t module);
// Ends all guards without an observation; `why` is the reason.
void release_all_guards(Unknown why);
// Must be called when an operation begins on which other ranks may make progress at any time: it
// may access memory beside results.
void operation_begins();
// Ends all guards and removes their handlers if the signal is one of the guards'. Must be called
// before the application sets or queries the handler of this signal.
void application_sets_handler(int signal);
// Pause and resume the thread that closes pages. Must be called before a fork, and after it in the
// parent.
void fork_begins();
void fork_ended();
// Ends all watching, and frees the lock, since no other thread exists. Must be called in the child
// after a fork.
void guards_in_child();
// Says that the application has passed these bytes to MPI. writes: MPI may write them. A size of
// SIZE_MAX means unknown. call: the calling instruction.
void given_to_mpi(const void* begin, std::size_t bytes, bool writes, Instruction call);
// Says that MPI sends these bytes. Returns bounds on the time since they were last written.
std::optional<Unwritten> sent_by_mpi(const void* begin, std::size_t bytes, std::int64_t when_ns);

// Returns whether entering MPI need not be recorded for this thread: it is the only thread, no
// guard exists, and its system calls are not dispatched.
inline bool nobody_looks() {
  const Thread* const me = this_record();
  return !me || (live.load(std::memory_order_relaxed) == 0 &&
                 !me->dispatched.load(std::memory_order_relaxed) &&
                 !several.load(std::memory_order_relaxed));
}
// Record that this thread enters or leaves MPI. System calls made inside MPI belong to MPI, and
// pages that results share with other data are open there.
void enter_mpi();
void leave_mpi();
// Pairs enter_mpi() with leave_mpi() for a call that may be left by a jump or an exception.
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

// Returns the time spent on guards so far.
std::int64_t guarding_ns();

}  // namespace weft::advise
