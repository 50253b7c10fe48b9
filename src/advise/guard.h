// Guards measure the time from a collective's return to the first touch of its result, and from the
// last write of its send buffer to the call. Pages that hold the result are closed (mprotect) after
// the call has completed. The first access, by any thread or system call, opens them again and ends
// the interval. Results of at most 8 bytes are watched by a hardware breakpoint instead. Pages of
// send buffers are closed for writes; a write opens them, and a thread of the advisor's closes them
// again, until the next call that sends them. Whenever an observation would not be safe, the guard
// ends as "unknown" before it can change the program's behaviour.
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

// Must be called once, in MPI_Init: the budget is a share of the run time.
void guards_begin(double overhead);
// Returns why there are no guards at all; Unknown::none if there are.
Unknown guards_off();

// Bounds on the time since a buffer was last written, and the instruction that wrote it.
struct Unwritten {
  Bounds bounds;
  Instruction writer;
};

// Watches the result of this site's call from now on, or notes why that is impossible. may_share:
// memory beside the result may be on its pages, since only this program's own threads use it.
void guard_result(Site& site, const void* begin, std::size_t bytes, bool may_share);
// Does likewise for the buffer that the call has sent and that the next call may send again.
void guard_sent(Site& site, const void* begin, std::size_t bytes, bool may_share);
// Watches a buffer of an operation in flight until end_flight(). read_only: only writes.
void guard_flight(int flight, const void* begin, std::size_t bytes, bool read_only);
void end_flight(int flight);
// Tells that the program's only thread has been inside MPI since then. Send buffers are closed as
// of that time when the call is left.
void nothing_written_since(std::int64_t began_ns);
// Returns whether the budget allows another guard of so many bytes.
bool guard_affordable(std::size_t bytes);
// Returns whether the budget is unlimited.
bool guard_always();
// Records an interval before the call that started at `when_ns`.
void add_before(Site& site, const Unwritten& found, std::int64_t when_ns);

// touch_now() returns the current touch and its place; have_place() stores the place unless the
// touch has become that of another instruction.
Touch touch_now(const Touch& touch);
void have_place(Touch& touch, std::uint64_t address, std::uint64_t offset, std::uint32_t module);
// Ends all guards without a touch, for the reason `why`.
void release_all_guards(Unknown why);
// Tells that an operation has begun which other ranks may serve at any time: it may access memory
// beside results.
void operation_begins();
// Must be called before the application sets or queries the handler of this signal.
void application_sets_handler(int signal);
// Are called around a fork, in the parent and in the child.
void fork_begins();
void fork_ended();
// Is called in the child after a fork: nothing is watched there, and no other thread holds a lock.
void guards_in_child();
// Tells that the application has passed these bytes to MPI, which may write them or only reads
// them. A size of SIZE_MAX means that it is unknown. call: the calling instruction.
void given_to_mpi(const void* begin, std::size_t bytes, bool writes, Instruction call);
// Tells that MPI sends these bytes. Returns bounds on the time since they were last written.
std::optional<Unwritten> sent_by_mpi(const void* begin, std::size_t bytes, std::int64_t when_ns);

// Returns whether nobody needs to know that this thread is in MPI: it is the only thread that could
// set a guard, no guard exists, and the kernel dispatches no system calls.
inline bool nobody_looks() {
  const Thread* const me = this_record();
  return !me || (live.load(std::memory_order_relaxed) == 0 &&
                 !me->dispatched.load(std::memory_order_relaxed) &&
                 !several.load(std::memory_order_relaxed));
}
// Mark that this thread enters or leaves MPI. Inside MPI its system calls are MPI's, and pages that
// results share with other data are open.
void enter_mpi();
void leave_mpi();
// Wraps enter_mpi() and leave_mpi() for a call that may be left by a jump or an exception.
class InMpi final : public Duty {
 public:
  constexpr InMpi() = default;
  void begin() {
    enter_mpi();
    Duty::begin();
  }
  void end() {
    Duty::end();
    leave_mpi();
  }

 private:
  void fulfil() override { leave_mpi(); }
};
inline constinit thread_local InMpi in_mpi __attribute__((tls_model("initial-exec")));

// Returns the time that guarding has taken.
std::int64_t guarding_ns();

}  // namespace weft::advise
