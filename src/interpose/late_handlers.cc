#include "interpose/late_handlers.h"

#include <array>
#include <cstddef>
#include <mutex>
#include <utility>

#include "base/left_calls.h"
#include "interpose/generated/bodies.h"
#include "library/search.h"
#include "runtime/job/runtime.h"

namespace weft::interpose {

constinit thread_local LateHandlers late_handlers __attribute__((tls_model("initial-exec"))) = {};
constinit NextCalls next_calls_before{};
constinit LibraryCalls library_calls_before{};

namespace {

template <class Object>
using Handler = void(Object*, int*, ...);

template <class Object>
void tell(const ReportedError& error, int* code) {
  auto object = (Object)error.object;
  reinterpret_cast<Handler<Object>*>(error.handler)(&object, code);
}

// Returns whether this code runs inside an MPI call that will call the application's error handler
// after its return. It also searches the stack for that call's frame, since the call may have been
// left by longjmp() from a callback.
bool is_before_library() {
  return late_handlers.call && late_handlers.error.call != late_handlers.call &&
         is_on_stack(late_handlers.call);
}

template <class Object>
void report(Handler<Object>* handler, Object* object, int* code) {
  if (!is_before_library()) return handler(object, code);
  late_handlers.error = {tell<Object>, reinterpret_cast<void (*)()>(handler),
                         (std::uintptr_t)*object, *code, late_handlers.call};
}

// Provides the functions that the MPI library gets in place of the application's error handlers.
// When the MPI library calls such a function, it does not tell which handler is meant. Therefore
// each handler has a function of its own.
template <class Object>
class LateFunctions {
 public:
  // Returns the function that stands for this handler. Returns the handler itself if all kMost
  // functions are in use.
  Handler<Object>* of(Handler<Object>* handler) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < kMost; ++i) {
      if (!handlers_[i]) handlers_[i] = handler;
      if (handlers_[i] == handler) return functions(std::make_index_sequence<kMost>())[i];
    }
    return handler;
  }

 private:
  static constexpr std::size_t kMost = 64;

  template <std::size_t kPlace>
  static void function(Object* object, int* code, ...) {
    report(handlers_[kPlace], object, code);
  }
  template <std::size_t... kPlaces>
  static std::array<Handler<Object>*, kMost> functions(std::index_sequence<kPlaces...>) {
    return {function<kPlaces>...};
  }

  std::mutex mutex_;
  static inline constinit std::array<Handler<Object>*, kMost> handlers_{};
};

// Replaces the functions in the tables of MPI calls, so that from now on the application's error
// handlers are called after each MPI call has returned. Has no effect after the first time.
void stand_before_library() {
  [[maybe_unused]] static const bool once = [] {
    next_calls_before = next_calls;
    library_calls_before = library_calls;
    stand_before_all_calls();
    return true;
  }();
}

// Returns the function to give to the MPI library in place of the application's error handler.
// from: the code address that creates the handler.
template <class Object>
Handler<Object>* given(const void* from, Handler<Object>* handler) {
  static constinit LateFunctions<Object> late_functions;
  const Runtime* const runtime = Runtime::active();
  if (!runtime || !runtime->level_is_raised() || runtime->library == Library::openmpi || !handler ||
      is_fortran_binding(from))
    return handler;
  stand_before_library();
  return late_functions.of(handler);
}

}  // namespace

int tell_late(int code) {
  const ReportedError error = std::exchange(late_handlers.error, {});
  int told = error.code;
  error.tell(error, &told);
  return code == error.code ? told : code;
}

namespace special {

int Comm_create_errhandler(const void* from, MPI_Comm_errhandler_function* comm_errhandler_fn,
                           MPI_Errhandler* errhandler) {
  return next_calls.Comm_create_errhandler(given<MPI_Comm>(from, comm_errhandler_fn), errhandler);
}

int File_create_errhandler(const void* from, MPI_File_errhandler_function* file_errhandler_fn,
                           MPI_Errhandler* errhandler) {
  return next_calls.File_create_errhandler(given<MPI_File>(from, file_errhandler_fn), errhandler);
}

int Win_create_errhandler(const void* from, MPI_Win_errhandler_function* win_errhandler_fn,
                          MPI_Errhandler* errhandler) {
  return next_calls.Win_create_errhandler(given<MPI_Win>(from, win_errhandler_fn), errhandler);
}

#if !defined(WEFT_FAMILY_OPENMPI) && !defined(WEFT_FAMILY_ABI)
int Errhandler_create(const void* from, MPI_Comm_errhandler_function* comm_errhandler_fn,
                      MPI_Errhandler* errhandler) {
  return next_calls.Errhandler_create(given<MPI_Comm>(from, comm_errhandler_fn), errhandler);
}
#endif

}  // namespace special
}  // namespace weft::interpose
