// Row 38 of tests/faults/README.md: MPI calls that never return, since a callback of the program
// throws an exception, jumps, or ends its thread. A sum is in flight meanwhile and is completed
// afterwards.
#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "faults.h"

namespace faults {
namespace {

struct Leaves : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class By { exception, jump, jump_with_mask, thread_exit, cancel };
By by = By::exception;
jmp_buf back;
sigjmp_buf back_with_mask;

[[noreturn]] void leave() {
  switch (by) {
    case By::exception:
      throw Leaves("left");
    case By::jump:
      longjmp(back, 1);
    case By::jump_with_mask:
      siglongjmp(back_with_mask, 1);
    case By::thread_exit:
      pthread_exit(nullptr);
    case By::cancel:
      pthread_cancel(pthread_self());
      pthread_testcancel();
  }
  std::abort();
}

void leaving_handler(MPI_Comm*, int*, ...) {
  leave();
}

int leaving_copy(MPI_Comm, int, void*, void*, void*, int*) {
  leave();
}

int leaving_deletion(MPI_Comm, int, void*, void*) {
  leave();
}

std::atomic<bool> operator_leaves{false};

void add_or_leave(void* in, void* inout, int* count, MPI_Datatype*) {
  if (operator_leaves.exchange(false)) leave();
  for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

// Calls `call` from a frame deep in the stack, below all frames of earlier calls.
template <class Call>
[[gnu::noinline]] void deeply(Call call) {
  std::array<volatile char, 1 << 14> room;
  room.front() = 0;
  call();
  room.back() = 1;
}

// Returns whether the call is left without returning, in the way that the callback uses.
template <class Call>
[[gnu::noinline]] bool leaves(Call call) {
  if (by == By::jump && setjmp(back) != 0) return true;
  if (by == By::jump_with_mask && sigsetjmp(back_with_mask, 1) != 0) return true;
  try {
    call();
  } catch (const Leaves&) {
    return true;
  }
  return false;
}

// Messages of this rank to itself, whose error handlers leave the call. MPICH calls the handler of
// MPI_COMM_WORLD for errors of a wait.
class Alone {
 public:
  Alone() {
    MPI_Comm_create_errhandler(leaving_handler, &handler_);
    for (const MPI_Comm comm : {MPI_COMM_SELF, MPI_COMM_WORLD})
      MPI_Comm_set_errhandler(comm, handler_);
  }
  ~Alone() {
    for (const MPI_Comm comm : {MPI_COMM_SELF, MPI_COMM_WORLD})
      MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler_);
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

  // Receives a message that is longer than the receive buffer.
  void receive_blocking() {
    send();
    int one = 0;
    MPI_Recv(&one, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  }
  void receive_and_wait() {
    send();
    MPI_Irecv(&one_, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &receive_);
    MPI_Wait(&receive_, MPI_STATUS_IGNORE);
  }
  void complete_sends() {
    for (MPI_Request& sent : sends_) MPI_Wait(&sent, MPI_STATUS_IGNORE);
    sends_.clear();
  }

 private:
  void send() {
    static const int two[2] = {1, 2};
    MPI_Isend(two, 2, MPI_INT, 0, 0, MPI_COMM_SELF, &sends_.emplace_back());
  }

  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
  std::vector<MPI_Request> sends_;
  MPI_Request receive_ = MPI_REQUEST_NULL;
  int one_ = 0;
};

constexpr int kInts = 1 << 16;

// Leaves a call by act() while a collective is in flight, then checks that it and later calls
// complete correctly.
template <class Act>
void around(MPI_Comm comm, const char* what, Act act) {
  Sum sum(kInts, comm);
  MPI_Request request, more;
  sum.start(&request);
  act();
  deeply([&] { MPI_Wait(&request, MPI_STATUS_IGNORE); });
  expect(sum.right(), what);
  sum.reset();
  sum.initialise(&more);
  MPI_Start(&more);
  MPI_Wait(&more, MPI_STATUS_IGNORE);
  expect(sum.right(), what);
  MPI_Request_free(&more);
  expect(sum_of_ranks(comm) == sum_of_ranks(MPI_COMM_WORLD), what);
  int one = 1, all = 0;
  MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm);
  expect(all == size_of(comm), what);
}

constexpr By kGoesOn[] = {By::exception, By::jump, By::jump_with_mask};

// Leaves the call in all ways. The next MPI call is made from a frame deeper than the left one, and
// from one above it.
template <class Call>
void leave_in_all_ways(MPI_Comm comm, const char* what, Call call) {
  for (const By way : kGoesOn)
    for (const bool deep : {false, true})
      around(comm, what, [&] {
        by = way;
        expect(leaves([&] { deep ? deeply(call) : call(); }), what);
      });
}

void out_of_handlers() {
  OwnWorld comm;
  Alone alone;
  leave_in_all_ways(comm, "a receive that was left", [&] { alone.receive_blocking(); });
  leave_in_all_ways(comm, "a wait that was left", [&] { alone.receive_and_wait(); });
  alone.complete_sends();
}

struct Told {
  MPI_Comm comm = MPI_COMM_NULL;
  int code = MPI_SUCCESS;
  int times = 0;
};
Told told;

void note(MPI_Comm* comm, int* code, ...) {
  told = {*comm, *code, told.times + 1};
  int size = 0;
  MPI_Comm_size(*comm, &size);
  MPI_Barrier(MPI_COMM_SELF);
}

// An error handler that returns must be called once for each error. It calls MPI itself.
void told_once() {
  OwnWorld comm;
  MPI_Errhandler handler, got;
  MPI_Comm_create_errhandler(note, &handler);
  for (const MPI_Comm one : {MPI_COMM_SELF, MPI_COMM_WORLD, static_cast<MPI_Comm>(comm)})
    MPI_Comm_set_errhandler(one, handler);
  MPI_Comm_get_errhandler(comm, &got);
  expect(got == handler, "the handler is the one that was set");
  MPI_Errhandler_free(&got);
  const auto once = [](const char* what, MPI_Comm expected, int code) {
    expect(told.times == 1, what);
    expect(expected == MPI_COMM_NULL || told.comm == expected, what);
    expect(told.code == code, what);
    told = {};
  };
  Sum sum(kInts, comm);
  MPI_Request request;
  sum.start(&request);
  MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
  once("an error that the program reports", comm, MPI_ERR_OTHER);
  const int two[2] = {1, 2};
  int one = 0, code;
  MPI_Request sent;
  MPI_Isend(two, 2, MPI_INT, 0, 0, MPI_COMM_SELF, &sent);
  code = MPI_Recv(&one, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  once("a receive's error", MPI_COMM_SELF, code);
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(sum.right(), "a sum beside errors");
  expect(told.times == 0, "no other error");
  for (const MPI_Comm one_of : {MPI_COMM_SELF, MPI_COMM_WORLD})
    MPI_Comm_set_errhandler(one_of, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
}

// An attribute of a communicator whose callbacks leave the MPI call.
class Attribute {
 public:
  Attribute() {
    MPI_Comm_dup(MPI_COMM_SELF, &comm_);
    MPI_Comm_create_keyval(leaving_copy, leaving_deletion, &key_, nullptr);
    MPI_Comm_set_attr(comm_, key_, nullptr);
  }
  void copy() {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_dup(comm_, &made);
  }
  void remove() { MPI_Comm_delete_attr(comm_, key_); }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int key_ = 0;
};

void out_of_attributes() {
  OwnWorld comm;
  Attribute attribute;
  leave_in_all_ways(comm, "a duplication that was left", [&] { attribute.copy(); });
  leave_in_all_ways(comm, "a deletion that was left", [&] { attribute.remove(); });
}

using Act = void(void* data);
using Caller = void(Act* act, void* data);

void call_directly(Act* act, void* data) {
  act(data);
}

// Calls act() from a frame without an unwind table, such as just-in-time compilers make.
void call_from_generated_code(Act* act, void* data) {
#if defined(__x86_64__)
  constexpr unsigned char kCode[] = {
      0x48, 0x83, 0xEC, 0x08,  // sub $8, %rsp
      0x48, 0x89, 0xF8,        // mov %rdi, %rax
      0x48, 0x89, 0xF7,        // mov %rsi, %rdi
      0xFF, 0xD0,              // call *%rax
      0x48, 0x83, 0xC4, 0x08,  // add $8, %rsp
      0xC3,                    // ret
  };
  static void* const code = [&] {
    void* const made =
        mmap(nullptr, sizeof kCode, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(made, kCode, sizeof kCode);
    expect(mprotect(made, sizeof kCode, PROT_READ | PROT_EXEC) == 0, "generated code");
    return made;
  }();
  reinterpret_cast<Caller*>(code)(act, data);
#else
  act(data);
#endif
}

// Which object a delete callback frees, and from what kind of frame.
struct Inner {
  Attribute attribute;
  Caller* caller;
};

void remove_and_go_on(void* attribute) {
  expect(leaves([&] { static_cast<Attribute*>(attribute)->remove(); }), "the inner call is left");
  MPI_Barrier(MPI_COMM_SELF);
}

// A call inside a callback is left. The callback notices it and continues, within its own call.
void inside_a_callback(Caller* caller) {
  OwnWorld comm;
  const auto deletion = [](MPI_Comm, int, void*, void* state) {
    auto* const inner = static_cast<Inner*>(state);
    inner->caller(remove_and_go_on, &inner->attribute);
    return MPI_SUCCESS;
  };
  for (const By way : kGoesOn) {
    Inner inner{{}, caller};
    int key = 0;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deletion, &key, &inner);
    MPI_Comm own = MPI_COMM_NULL;
    MPI_Comm_dup(comm, &own);
    MPI_Comm_set_attr(own, key, nullptr);
    by = way;
    around(comm, "an inner call that was left", [&] { MPI_Comm_free(&own); });
    expect(own == MPI_COMM_NULL, "the outer call has come to its end");
    MPI_Comm_free_keyval(&key);
  }
}

// After a call was left, the next call comes from generated code that lies deeper in the stack.
void before_generated_code() {
  OwnWorld comm;
  Attribute attribute;
  for (const By way : kGoesOn) {
    by = way;
    around(comm, "a call before generated code's", [&] {
      expect(leaves([&] { attribute.copy(); }), "the call is left");
      const auto barrier = [](void* on) { MPI_Barrier(*static_cast<MPI_Comm*>(on)); };
      deeply([&] { call_from_generated_code(barrier, comm.address()); });
    });
  }
}

// A reduction to rank 1, which has nothing more to send when its operator runs.
class Reduction {
 public:
  Reduction(int count, MPI_Comm comm)
      : in_(static_cast<std::size_t>(count), 1), out_(in_.size()), comm_(comm) {
    MPI_Op_create(add_or_leave, 1, &op_);
  }
  ~Reduction() { MPI_Op_free(&op_); }
  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;

  void block() { MPI_Reduce(in_.data(), out_.data(), count(), MPI_INT, op_, 1, comm_); }
  void start(MPI_Request* request) {
    MPI_Ireduce(in_.data(), out_.data(), count(), MPI_INT, op_, 1, comm_, request);
  }
  void initialise(MPI_Request* request) {
    MPI_Reduce_init(in_.data(), out_.data(), count(), MPI_INT, op_, 1, comm_, MPI_INFO_NULL,
                    request);
  }
  // Leaves the root's call and checks that the next reduction is right.
  template <class Call>
  void leave(const char* what, Call call) {
    const bool is_root = rank_of(comm_) == 1;
    around(comm_, what, [&] {
      by = By::exception;
      operator_leaves = is_root;
      expect(leaves(call) == is_root, what);
    });
    block();
    expect(!is_root || out_.back() == size_of(comm_), what);
  }

 private:
  int count() const { return static_cast<int>(in_.size()); }

  std::vector<int> in_, out_;
  MPI_Comm comm_;
  MPI_Op op_;
};

// Reductions of one number: in a long one, the library may need the rank after its operator has
// run.
void out_of_operators() {
  OwnWorld comm;
  Reduction reduction(1, comm);
  reduction.leave("an operator that throws in MPI_Reduce", [&] { reduction.block(); });
}

constexpr int kLong = 100000;  // so long that another thread may run the operator

// MPI libraries without Weft do not survive this case.
void out_of_requests() {
  OwnWorld comm;
  for (const int count : {1, 1000, kLong}) {
    Reduction reduction(count, comm);
    MPI_Request request = MPI_REQUEST_NULL;
    reduction.leave("an operator that throws in MPI_Ireduce", [&] {
      reduction.start(&request);
      for (int i = 0; i < 100 && operator_leaves && count == kLong; ++i) rest(1000);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
    expect(request == MPI_REQUEST_NULL, "a request that has failed is complete");
    reduction.initialise(&request);
    reduction.leave("an operator that throws in a persistent reduction", [&] {
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
    MPI_Request_free(&request);
  }
}

void* remove_and_end(void* attribute) {
  static_cast<Attribute*>(attribute)->remove();
  return attribute;
}

void ended_threads() {
  OwnWorld comm;
  for (const By way : {By::thread_exit, By::cancel}) {
    by = way;
    Attribute attribute;
    around(comm, "a thread that has ended in a call", [&] {
      pthread_t thread;
      void* result = nullptr;
      pthread_create(&thread, nullptr, remove_and_end, &attribute);
      pthread_join(thread, &result);
      expect(result != &attribute, "the thread ends in its call");
    });
  }
}

std::atomic<bool> in_call{false};

void* wait_for_ever(void*) {
  int before = 0, never = 0;
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
  in_call = true;
  MPI_Recv(&never, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return nullptr;
}

// The thread is cancelled at an arbitrary instruction, so nobody may call MPI afterwards.
void cancelled_at_once() {
  pthread_t thread;
  pthread_create(&thread, nullptr, wait_for_ever, nullptr);
  while (!in_call) rest();
  rest(1000 * (1 + rank_of(MPI_COMM_WORLD)));
  pthread_cancel(thread);
  pthread_join(thread, nullptr);
  tell_all("joined");
  std::_Exit(0);
}

// MPI_THREAD_FUNNELED is requested: with a higher level MPICH holds a lock while it calls handlers,
// even in a process of one thread.
void begin_funneled_and(void (*act)()) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  act();
  MPI_Finalize();
}

}  // namespace

const std::vector<Case>& left_cases() {
  static const std::vector<Case> cases = {
      {"out-of-handlers", [] { begin_funneled_and(out_of_handlers); }, true},
      {"told-once", [] { begin_funneled_and(told_once); }, true},
      {"out-of-attributes", out_of_attributes},
      {"inside-a-callback", [] { inside_a_callback(call_directly); }},
      {"inside-generated-code", [] { inside_a_callback(call_from_generated_code); }},
      {"before-generated-code", before_generated_code},
      {"out-of-operators", out_of_operators},
      {"out-of-requests", out_of_requests},
      {"ended-threads", ended_threads},
      {"cancelled-at-once", cancelled_at_once},
  };
  return cases;
}

}  // namespace faults
