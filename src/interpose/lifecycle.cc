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
