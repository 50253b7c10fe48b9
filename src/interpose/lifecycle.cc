// Implements MPI_Init, MPI_Init_thread and MPI_Finalize, and functions of Weft's C interface
// (weft.h).
#include "runtime/lifecycle.h"

#include <dlfcn.h>
#include <sched.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/left_calls.h"
#include "base/log.h"
#include "base/started.h"
#include "interpose/attributes_of_self.h"
#include "interpose/generated/bodies.h"
#include "interpose/hooks.h"
#include "interpose/nothing_called.h"
#include "library/failures.h"
#include "library/generated/library_calls.h"
#include "library/generated/next_calls.h"
#include "library/handles.h"
#include "library/in_finalize.h"
#include "library/search.h"
#include "runtime/comm/agreement.h"
#include "runtime/job/bind.h"
#include "runtime/job/runtime.h"
#include "runtime/job/whole_collectives.h"
#include "runtime/request/inline_call.h"
#include "topo/job.h"
// Programs declare the functions of Weft's C interface as weak symbols, so that they run without
// Weft. This macro exports the definitions in this file.
#define WEFT_API __attribute__((visibility("default")))
#include "runtime/request/watchdog.h"
#include "weft.h"

namespace weft::interpose {

namespace {

[[noreturn]] void refuse(const Error& error) {
  say(error.message);
  std::_Exit(2);
}

// Holds what MPI_Init must know before it calls the MPI library's initialisation.
struct Beginning {
  Config config;
  // True if MPI is initialised with the application's own thread level, because engine auto can
  // work with it.
  bool by_rule;
  // The reason for which Weft refuses to work. One rank of the job prints it after MPI has been
  // initialised. Empty if there is none.
  std::string refusal{};

  bool keeps_level() const {
    return by_rule || config.engine == Engine::native || is_to_continue_after_failures();
  }
};

Beginning beginning_for(int required) {
  mpi_has_begun();
  restore_preload();
  if (const auto family = check_family(); !family) refuse(family.error());
  const auto checked = checked_config();
  if (!checked) return {Config(), true, checked.error().message};
  const Config& config = *checked;
  const bool one_node = on_one_node([](const char* name) { return std::getenv(name); });
  if (config.engine == Engine::tcc && bind_library()) let_several_run(identify_library());
  return {config, weft::keeps_level(config, one_node, required == MPI_THREAD_MULTIPLE)};
}

// The state of MPI_Finalize. It does not lie on the stack and is never destroyed, because a
// callback of the application may leave MPI_Finalize by longjmp().
struct Finalizing {
  std::optional<OutsideCalls> application;  // present while the application's callbacks run
  // Present in the part of MPI_Finalize after the callbacks, so that the watchdog reports a hang
  // there.
  std::optional<WatchedCall> rest;
  bool is_called = false;
};

Finalizing& finalizing() {
  static auto& one = *new Finalizing;
  return one;
}

// A callback for MPI_COMM_SELF that runs at the beginning of MPI_Finalize. MPI calls from now on,
// until end_within(), count as the application's, since its own callbacks run in this time.
int application_calls(MPI_Comm, int, void*, void*) {
  finalizing().application.emplace();
  return MPI_SUCCESS;
}

// A callback for MPI_COMM_SELF that ends Weft's runtime. The MPI library calls it in MPI_Finalize.
// MPICH calls it in the last MPI_Session_finalize if a session is still open at MPI_Finalize.
int end_within(MPI_Comm, int, void*, void*) {
  Finalizing& now = finalizing();
  now.application.reset();
  const std::uint8_t before = std::exchange(this_thread.is, kInside);
  if (now.is_called) now.rest.emplace(CallId::Finalize);
  Lifecycle::end();
  this_thread.is = before;
  return MPI_SUCCESS;
}

// Runs the application's delete callbacks of MPI_COMM_SELF while Weft's threads may still call MPI.
// With engine tcc these callbacks may depend on those threads: two ranks may have started
// collectives on different communicators in different orders.
void run_callbacks_early() {
  finalizing().application.emplace();
  delete_attributes_of_self();
  finalizing().application.reset();
}

// True if end_within() is registered, so that the MPI library calls it in MPI_Finalize.
bool ends_in_callback = false;

void begin(const Beginning& beginning, int asked_level, int level) {
  if (beginning.refusal.empty()) {
    Lifecycle::begin(beginning.config, asked_level, level, beginning.by_rule);
    ends_in_callback = Runtime::active() && call_in_finalize(end_within);
    return;
  }
  if (bind_library()) end_job_refusing(beginning.refusal);
  refuse({beginning.refusal});
}

// Initialises MPI and then Weft. Requests MPI_THREAD_MULTIPLE if Weft's threads need it, otherwise
// the level that the application requested. Returns the MPI library's error code.
int initialise(const Beginning& beginning, int* argc, char*** argv, int required, int* provided) {
  const int level = beginning.keeps_level() ? required : MPI_THREAD_MULTIPLE;
  const int code = next_calls.Init_thread(argc, argv, level, provided);
  if (code == MPI_SUCCESS) begin(beginning, required, *provided);
  return code;
}

}  // namespace

namespace special {

int Init(int* argc, char*** argv) {
  const Beginning beginning = beginning_for(MPI_THREAD_SINGLE);
  if (beginning.keeps_level()) {
    const int code = next_calls.Init(argc, argv);
    if (code == MPI_SUCCESS) begin(beginning, MPI_THREAD_SINGLE, MPI_THREAD_SINGLE);
    return code;
  }
  int provided = 0;
  return initialise(beginning, argc, argv, MPI_THREAD_SINGLE, &provided);
}

int Init_thread(int* argc, char*** argv, int required, int* provided) {
  return initialise(beginning_for(required), argc, argv, required, provided);
}

// Ends the thread that carries out collectives in CUDA streams, if the program is linked to
// libweft-gpu. That thread may call MPI until this function returns.
void end_streams() {
  if (auto* const end = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "weft_gpu_finalize")))
    end();
}

// Ends Weft, and finalises MPI. The application's delete callbacks of MPI_COMM_SELF run inside the
// MPI library's MPI_Finalize, between Weft's callbacks application_calls() and end_within(). If a
// session is still open, MPICH calls them only in the last MPI_Session_finalize.
int Finalize() {
  finalizing().is_called = true;
  end_streams();
  if (Lifecycle::loses_threads_in_finalize()) run_callbacks_early();
  Lifecycle::finalize_begins();
  if (!ends_in_callback || !call_in_finalize(application_calls))
    end_within(handles.comm_self, 0, nullptr, nullptr);
  const int code = next_calls.Finalize();
  finalizing().application.reset();
  finalizing().rest.reset();
  finalizing().is_called = false;
  Runtime* const left = Runtime::active();
  if (left && !left->ends_with_last_session()) Lifecycle::end_without_library();
  if (!Runtime::active()) stop_watchdog();
  return code;
}

}  // namespace special
}  // namespace weft::interpose

const char* weft_version(void) {
  return WEFT_VERSION;
}

int weft_progress(void) {
  using weft::Runtime;
  const weft::interpose::Entry entry(nullptr);
  Runtime* runtime = Runtime::active();
  if (!runtime) return 0;
  weft::InlineCall::own().hand_over();
  runtime->progress.poll();
  return runtime->progress.under_way();
}
