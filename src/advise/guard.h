// Guards: the time from a collective's return to the first touch of its result, and from the last
// write of what is sent to the call.
// Pages that hold the result are closed (mprotect) after the call has completed; the first access,
// by any thread or by a system call, opens them again and is the window's end. Results of at most 8
// bytes are watched by a breakpoint of the processor instead. Pages that hold what was sent are
// closed for writes; a write opens them, and a thread of the advisor's closes them again, until the
// next call that sends them. Whatever could not be observed safely ends a guard as "unknown",
// before it can change what the program does.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "advise/record.h"
#include "advise/threads.h"
#include "base/left_calls.h"

namespace weft::advise {

// Once, in MPI_Init: the budget is a part of the run time.
void guards_begin(double overhead);
// Why there are no windows at all; Unknown::none while there are.
Unknown guards_off();

// Where the program was: the address behind an instruction, and where its function returns to if
// that keeps no frame, as those do that copy memory.
struct Instruction {
  std::uintptr_t address = 0, returns_to = 0;  // 0: not known
};

// What is known of the time since something was written last, and who wrote it.
struct Unwritten {
  Bounds bounds;
  Instruction writer;
};

// Watches this result, of this site, from now on; or notes why not. may_share: nothing but this
// program's own threads touches what lies beside it, or was freed.
void guard_result(Site& site, const void* begin, std::size_t bytes, bool may_share);
// The same of what the call has sent, and the next one may send again.
void guard_sent(Site& site, const void* begin, std::size_t bytes, bool may_share);
// The only thread has been in a call of MPI since then: what is sent is closed from there on, when
// the call is left.
void nothing_written_since(std::int64_t began_ns);
// Whether the budget allows another guard of so many bytes.
bool guard_affordable(std::size_t bytes);
// Whether it is all the time that there is.
bool guard_always();
// A window before the call that came at this time.
void add_before(Site& site, const Unwritten& found, std::int64_t when_ns);

extern std::atomic<int> live;  // guards; seq_cst: see Thread::may_block, and leave_mpi()
inline bool guards_exist() {
  return live.load() > 0;
}
// As it is now; and its place, which it gets unless it has become that of another instruction.
Touch touch_now(const Touch& touch);
void have_place(Touch& touch, std::uint64_t address, std::uint64_t offset, std::uint32_t module);
// All guards end without having seen a touch.
void release_all_guards(Unknown why);
// An operation has begun that other ranks may serve at any time: it may use what lies beside
// results.
void operation_begins();
// Before the application sets, or asks for, the handler of this signal.
void application_sets_handler(int signal);
// Around a fork, in the parent and in the child.
void fork_begins();
void fork_ended();
// After it: nothing is watched there, and no other thread holds anything.
void guards_in_child();
// The application has given these bytes to MPI, which may write them, or only reads them. SIZE_MAX:
// nobody knows how many. call: where it did.
void given_to_mpi(const void* begin, std::size_t bytes, bool writes, Instruction call);
// It sends them at this time: what is known of the time since they were written last.
std::optional<Unwritten> sent_by_mpi(const void* begin, std::size_t bytes, std::int64_t when_ns);

// The only thread that could set a guard is this one, there is none, and the kernel dispatches
// nothing: whether it is in MPI is its own affair.
inline bool nobody_looks() {
  const Thread* const me = this_record();
  return !me || (live.load(std::memory_order_relaxed) == 0 &&
                 !me->dispatched.load(std::memory_order_relaxed) &&
                 !several.load(std::memory_order_relaxed));
}
// This thread enters MPI and leaves it: inside, its system calls are MPI's, and what lies beside
// results is open.
void enter_mpi();
void leave_mpi();
// This is the form for a call that may be left.
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

// Time that guarding has taken.
std::int64_t guarding_ns();

}  // namespace weft::advise
