// MPI_Init to MPI_Finalize, the calls' other hooks, and the C interface.
#include <sched.h>

#include <cstdlib>

#include "base/clock.h"
#include "base/log.h"
#include "interpose/bind.h"
#include "interpose/generated/bodies.h"
#include "interpose/generated/library_calls.h"
#include "interpose/generated/next_calls.h"
#include "interpose/hooks.h"
#include "interpose/nothing_called.h"
#include "interpose/runtime.h"
#include "interpose/search.h"
#include "interpose/whole_collectives.h"
#include "topo/job.h"
// Weak in programs; here they are defined for good.
#define WEFT_API __attribute__((visibility("default")))
#include "weft.h"

namespace weft::interpose {

constinit thread_local std::uint8_t this_thread __attribute__((tls_model("initial-exec"))) = 0;

namespace {

[[noreturn]] void refuse(const Error& error) {
  say(error.message);
  std::_Exit(2);
}

// What cannot be right is refused before MPI starts.
Config config_or_exit() {
  if (const auto family = check_family(); !family) refuse(family.error());
  auto config = Config::from_environment();
  if (!config) refuse(config.error());
  if (const auto algorithms = check_algorithms(*config); !algorithms) refuse(algorithms.error());
  return *config;
}

// How this process enters MPI.
struct Beginning {
  Config config;
  bool by_rule;  // the level of threads stays as it is, by keeps_level()

  bool keeps_level() const { return by_rule || config.engine == Engine::native; }
};

Beginning beginning_for(int required) {
  mpi_has_begun();
  const Config config = config_or_exit();
  const bool one_node = on_one_node([](const char* name) { return std::getenv(name); });
  if (config.engine == Engine::tcc && bind_library()) let_several_run(identify_library());
  return {config, weft::keeps_level(config, one_node, required == MPI_THREAD_MULTIPLE)};
}

// The application gets at least the level that it asked for; engines with a thread need the
// highest inside.
int initialise(const Beginning& beginning, int* argc, char*** argv, int required, int* provided) {
  const int level = beginning.keeps_level() ? required : MPI_THREAD_MULTIPLE;
  const int code = next_calls.Init_thread(argc, argv, level, provided);
  if (code == MPI_SUCCESS) Runtime::begin(beginning.config, required, *provided, beginning.by_rule);
  return code;
}

}  // namespace

BlockingCall::BlockingCall(CallId id) : id_(id) {
  Runtime* runtime = Runtime::active();
  if (!runtime) return;
  handed_over_ = runtime->progress.caller_blocks();
  alone_ = runtime->callers_only();
  if (runtime->application_track()) began_ns_ = now_ns();
}

BlockingCall::~BlockingCall() {
  if (!handed_over_ && began_ns_ == 0) return;
  Runtime* runtime = Runtime::active();
  if (!runtime) return;
  if (handed_over_) runtime->progress.caller_returns();
  if (auto* track = began_ns_ ? runtime->application_track() : nullptr)
    track->span(call_name(id_), began_ns_, now_ns());
}

int BlockingCall::drive(const std::function<int(MPI_Request*)>& post, MPI_Status* status) {
  MPI_Request request;
  const int code = post(&request);
  if (code != MPI_SUCCESS) return code;
  MPI_Status* kept = status ? status : MPI_STATUS_IGNORE;
  return repeat([&](int* completed) { return next_calls.Test(&request, completed, kept); });
}

int BlockingCall::repeat(const std::function<int(int*)>& ask) {
  int code = MPI_SUCCESS;
  Runtime::active()->progress.drive_until(
      [&] {
        int flag = 0;
        code = ask(&flag);
        return flag != 0 || code != MPI_SUCCESS;
      },
      [] { sched_yield(); });
  return code;
}

void poll() {
  Runtime* runtime = Runtime::active();
  if (runtime && runtime->progress.under_way() > 0) runtime->progress.poll();
}

namespace special {

int Init(int* argc, char*** argv) {
  const Beginning beginning = beginning_for(MPI_THREAD_SINGLE);
  if (beginning.keeps_level()) {
    const int code = next_calls.Init(argc, argv);
    if (code == MPI_SUCCESS)
      Runtime::begin(beginning.config, MPI_THREAD_SINGLE, MPI_THREAD_SINGLE, beginning.by_rule);
    return code;
  }
  int provided = 0;
  return initialise(beginning, argc, argv, MPI_THREAD_SINGLE, &provided);
}

int Init_thread(int* argc, char*** argv, int required, int* provided) {
  return initialise(beginning_for(required), argc, argv, required, provided);
}

int Finalize() {
  int code = MPI_SUCCESS;
  {
    const WatchedCall watched(CallId::Finalize);
    Runtime::end();
    code = next_calls.Finalize();
  }
  stop_watchdog();
  return code;
}

}  // namespace special
}  // namespace weft::interpose

const char* weft_version(void) {
  return WEFT_VERSION;
}

int weft_progress(void) {
  using weft::interpose::Runtime;
  const weft::interpose::Entry entry;
  Runtime* runtime = Runtime::active();
  if (!runtime) return 0;
  runtime->progress.poll();
  return runtime->progress.under_way();
}
