// Calls the application's error handlers only after the MPI library's call has returned. The MPI
// library gets a function of Weft's in place of each handler, which records the error. This is
// needed in programs whose thread level Weft has raised: MPICH and its derivatives then hold a lock
// while they call a handler, and a handler that throws or calls longjmp() would leave it locked.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "library/generated/library_calls.h"
#include "library/generated/next_calls.h"

namespace weft::interpose {

// Describes an error that the MPI library has reported, and the application's error handler for it.
struct ReportedError {
  void (*tell)(const ReportedError& error, int* code);
  void (*handler)();
  std::uintptr_t object;  // the handle of the communicator, window or file
  int code;
  const void* call;  // the MPI call that failed, identified by the end of its stack frame
};

struct LateHandlers {
  // The innermost MPI library call that is wrapped by LateHandling, identified by the end of its
  // stack frame; nullptr outside of such calls.
  const void* call;
  ReportedError error;
};
extern constinit thread_local LateHandlers late_handlers __attribute__((tls_model("initial-exec")));

// Calls the application's handler for the recorded error. It must be called after the MPI library's
// call has returned `code`. If the recorded error has this code, returns the code that the handler
// sets; otherwise returns `code`.
int tell_late(int code);

// Copies of the tables next_calls and library_calls, from the time before their functions were
// replaced by those of LateCall.
extern NextCalls next_calls_before;
extern LibraryCalls library_calls_before;

// LateHandling surrounds a call of the MPI library. Its function end() calls the application's
// error handler if the call has reported an error. It is not a destructor, since a handler may
// leave by longjmp(). After that, late_handlers.call refers to a stack frame that no longer exists.
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

// LateCall<kCall> provides a function with the signature of an MPI call. It makes that call, and
// calls the application's error handler afterwards (LateHandling). stand_before() puts this
// function into the tables of calls.
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
