// Calls the application's error handlers after the library's call has returned. The library gets a
// function of Weft in place of each handler, which records the error. If several threads may call
// MPI, MPICH and its derivatives hold a lock while they call a handler; one that throws or jumps
// would leave it held. Since Weft has raised the thread level, the program would not have met this
// lock without Weft.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "library/generated/library_calls.h"
#include "library/generated/next_calls.h"

namespace weft::interpose {

// An error that the library has reported, and the application's handler for it.
struct ReportedError {
  void (*tell)(const ReportedError& error, int* code);
  void (*handler)();
  std::uintptr_t object;  // the communicator, window or file
  int code;
  const void* call;  // the library call in which the error occurred, identified by its frame's end
};

struct LateHandlers {
  const void* call;  // the innermost library call, identified by the end of its stack frame
  ReportedError error;
};
extern constinit thread_local LateHandlers late_handlers __attribute__((tls_model("initial-exec")));

// Calls the handler of the error that was recorded in a library call, after the call has returned
// `code`. Returns the handler's code if the recorded error was `code`; otherwise `code`.
int tell_late(int code);

// The tables of the library's functions as they were before LateCall's functions were put in.
extern NextCalls next_calls_before;
extern LibraryCalls library_calls_before;

// LateHandling: surrounds a library call, and calls the handler of an error at the end. It has no
// destructor, since handlers may leave by a jump; then the frame recorded in late_handlers.call is
// no longer on the stack.
class LateHandling {
 public:
  [[gnu::always_inline]] LateHandling() : before_(late_handlers.call) {
    late_handlers.call = __builtin_dwarf_cfa();
  }
  [[gnu::always_inline]] int end(int code) const {
    late_handlers.call = before_;
    if (late_handlers.error.call != __builtin_dwarf_cfa()) [[likely]]
      return code;
    return tell_late(code);
  }

 private:
  const void* const before_;
};

// LateCall<kCall>: functions with the signature of a library call that make this call inside a
// LateHandling, and stand_before(), which puts them in the tables of calls.
template <auto kCall>
struct LateCall;

template <class... Arguments, Next<int(Arguments...)> NextCalls::*kCall>
struct LateCall<kCall> {
  using Names = Next<int(Arguments...)>;

  template <auto kName>
  static int call(Arguments... arguments) {
    const LateHandling late;
    return late.end((next_calls_before.*kCall.*kName)(arguments...));
  }
  template <auto kName>
  static void stand_before_name() {
    int (*const before)(Arguments...) = &call<kName>;
    if (next_calls.*kCall.*kName)
      __atomic_store_n(&(next_calls.*kCall.*kName), before, __ATOMIC_RELEASE);
  }
  static void stand_before() {
    stand_before_name<&Names::mpi>();
    stand_before_name<&Names::pmpi>();
  }
};

template <class... Arguments, int (*LibraryCalls::*kCall)(Arguments...)>
struct LateCall<kCall> {
  static int call(Arguments... arguments) {
    const LateHandling late;
    return late.end((library_calls_before.*kCall)(arguments...));
  }
  static void stand_before() {
    int (*const before)(Arguments...) = &call;
    if (library_calls.*kCall) __atomic_store_n(&(library_calls.*kCall), before, __ATOMIC_RELEASE);
  }
};

void stand_before_all_calls();

}  // namespace weft::interpose
