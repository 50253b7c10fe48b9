// Answers questions about the job, and prepares Weft's threads when they start.
#include "runtime/job/runtime.h"

#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/this_thread.h"
#include "library/generated/library_calls.h"
#include "library/generated/next_calls.h"
#include "library/handles.h"
#include "library/search.h"
#include "runtime/job/bind.h"
#include "topo/machine.h"

namespace weft {
namespace {

thread_local Trace::Track* own_track = nullptr;

const char* activity_name(Activity what) {
  switch (what) {
    case Activity::working:
      return "working";
    case Activity::polling:
      return "polling";
    case Activity::asleep:
      return "asleep";
  }
  return "";
}

std::uint32_t usable_tags() {
  int* upper_bound = nullptr;
  int found = 0;
  library_calls.Comm_get_attr(handles.comm_world, MPI_TAG_UB, &upper_bound, &found);
  return found && *upper_bound > 0 ? static_cast<std::uint32_t>(*upper_bound) : 32767;
}

void move_to_core(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0)
    say("core " + std::to_string(core) +
        " is not available to this process: its progress thread stays beside the rank");
}

}  // namespace

Runtime::Runtime(const Config& config, Library library, ThreadMay thread_may, Scope scope)
    : config(config),
      library(library),
      summary(config.summary || !config.summary_json_file.empty()),
      plans(config.plan_cache_file),
      trial_budget(config.learning_budget, now_ns()),
      progress(config.backoff, thread_may, *this),
      thread_may_(thread_may),
      scope_(scope),
      observing_(config.summary || !config.summary_json_file.empty() || !config.trace_file.empty()),
      completions_are_ours_(first_in_chain()),
      tags_(usable_tags()) {}

const std::string& Runtime::platform() {
  static const std::string words = machine_words() + ", " + library_words();
  return words;
}

bool Runtime::wants_blocking() const {
  const bool by_rule = config.blocking == Config::Blocking::by_rule;
  return by_rule ? config.engine == Engine::automatic : config.blocking == Config::Blocking::always;
}

bool Runtime::may_learn() const {
  return config.engine == Engine::automatic && wants_blocking() && config.learn != Learn::off;
}

bool Runtime::learns_by_messages() const {
  return takes_all() && threads_allowed() && may_learn();
}

bool Runtime::learns_in_memory() const {
  return in_memory_only() && has_memory_thread() && may_learn();
}

void Runtime::stop_threads() {
  progress.stop();
}

void Runtime::begin_track() {
  own_track = trace_.add_track("application", true);
}

Trace::Track* Runtime::application_track() {
  if (config.trace_file.empty()) return nullptr;
  if (!own_track) own_track = trace_.add_track("application thread", true);
  return own_track;
}

void Runtime::thread_started(const char* name, int index) {
  this_thread.is = kInside;
  if (thread_core_ >= 0) move_to_core(thread_core_);
  // The name is set after the core. Tools that recognise the thread by its name thus find it on its
  // final core.
  const std::string full = "weft-" + std::string(name) + (index > 0 ? std::to_string(index) : "");
  pthread_setname_np(pthread_self(), full.substr(0, 15).c_str());
  if (!config.trace_file.empty()) own_track = trace_.add_track(full, false);
}

void Runtime::moves_to(int core) {
  move_to_core(core);
}

void Runtime::activity(Activity what) {
  if (own_track) own_track->change(activity_name(what), now_ns());
}

bool Runtime::lets_pass_through() const {
  return !several_callers_ && config.watchdog_s == 0 && library_is_next(&from_library);
}

}  // namespace weft
