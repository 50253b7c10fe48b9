// MPI_Init to MPI_Finalize, the calls' other hooks, and the C interface.
#include <dlfcn.h>
#include <sched.h>

#include <cstdlib>

#include "base/clock.h"
#include "base/log.h"
#include "interpose/generated/bodies.h"
#include "interpose/hooks.h"
#include "interpose/nothing_called.h"
#include "library/generated/library_calls.h"
#include "library/generated/next_calls.h"
#include "library/search.h"
#include "runtime/agreement.h"
#include "runtime/bind.h"
#include "runtime/runtime.h"
#include "runtime/whole_collectives.h"
#include "topo/job.h"
// Weak in programs; here they are defined for good.
#define WEFT_API __attribute__((visibility("default")))
#include "runtime/watchdog.h"
#include "weft.h"

namespace weft::interpose {

namespace {

[[noreturn]] void refuse(const Error& error) {
  say(error.message);
  std::_Exit(2);
}

// How this process enters MPI.
struct Beginning {
  Config config;
  bool by_rule;           // the level of threads stays as it is, by keeps_level()
  std::string refusal{};  // said once MPI has started: by one rank of the job

  bool keeps_level() const { return by_rule || config.engine == Engine::native; }
};

Beginning beginning_for(int required) {
  mpi_has_begun();
  if (const auto family = check_family(); !family) refuse(family.error());
  const auto checked = checked_config();
  if (!checked) return {Config(), true, checked.error().message};
  const Config& config = *checked;
  const bool one_node = on_one_node([](const char* name) { return std::getenv(name); });
  if (config.engine == Engine::tcc && bind_library()) let_several_run(identify_library());
  return {config, weft::keeps_level(config, one_node, required == MPI_THREAD_MULTIPLE)};
}

void begin(const Beginning& beginning, int asked_level, int level) {
  if (beginning.refusal.empty())
    return Runtime::begin(beginning.config, asked_level, level, beginning.by_rule);
  if (bind_library()) end_job_refusing(beginning.refusal);
  refuse({beginning.refusal});
}

// The application gets at least the level that it asked for; engines with a thread need the
// highest inside.
int initialise(const Beginning& beginning, int* argc, char*** argv, int required, int* provided) {
  const int level = beginning.keeps_level() ? required : MPI_THREAD_MULTIPLE;
  const int code = next_calls.Init_thread(argc, argv, level, provided);
  if (code == MPI_SUCCESS) begin(beginning, required, *provided);
  return code;
}

}  // namespace

void poll() {
  Runtime* runtime = Runtime::active();
  if (runtime && runtime->progress.under_way() > 0) runtime->progress.poll();
}

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

// Collectives in streams (src/gpu), where the program has them: their thread calls MPI until here.
void end_streams() {
  if (auto* const end = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "weft_gpu_finalize")))
    end();
}

int Finalize() {
  int code = MPI_SUCCESS;
  {
    const WatchedCall watched(CallId::Finalize);
    end_streams();
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
  using weft::Runtime;
  const weft::interpose::Entry entry(nullptr);
  Runtime* runtime = Runtime::active();
  if (!runtime) return 0;
  runtime->in_hand.hand_over();
  runtime->progress.poll();
  return runtime->progress.under_way();
}
