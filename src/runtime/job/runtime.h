// Runtime: the state of the process between MPI_Init and MPI_Finalize: configuration, MPI library,
// facts on which the ranks have agreed, progress, summary and plans.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/config.h"
#include "engine/core_agent.h"
#include "engine/observer.h"
#include "engine/progress.h"
#include "runtime/job/epoch.h"
#include "runtime/job/summary.h"
#include "select/plan_cache.h"
#include "select/selector.h"
#include "select/split_rule.h"
#include "select/trial_budget.h"
#include "select/variants.h"
#include "trace/trace.h"

namespace weft {

// Tells which of the job's collectives Weft may carry out. in_memory: those that need only the
// node's shared memory.
enum class Scope : std::uint8_t { all, in_memory, nothing };

// Tells how many cores of a node its ranks have, in ascending order: fewer than ranks, one for each
// rank, or one more for each rank's thread.
enum class CoreSubscription : std::uint8_t { cores_are_shared, a_core_each, a_core_to_spare };

class Runtime : public Observer {
 public:
  // Returns the runtime; nullptr before MPI_Init, after MPI_Finalize, and if Weft is inactive.
  static Runtime* active() { return active_.load(std::memory_order_acquire); }

  // Returns whether the library postpones its finalisation to the last MPI_Session_finalize if a
  // session outlives MPI_Finalize.
  bool ends_with_last_session() const {
    return library == Library::mpich || library == Library::intelmpi;
  }
  // Returns whether a thread of Weft may call the MPI library; otherwise engine function replaces
  // engines with threads.
  bool threads_allowed() const { return thread_may_ == ThreadMay::do_all; }
  // Returns whether only application threads inside MPI calls may run the application's reduction
  // operators: Weft has threads, and some rank's application has not requested MPI_THREAD_MULTIPLE.
  // The result is equal on all ranks.
  bool operators_stay() const { return operators_stay_; }
  // Returns whether only application threads inside MPI calls advance operations, so that no MPI
  // call may block in the library.
  bool callers_only() const { return !threads_allowed() && scope_ == Scope::all; }
  // Returns whether only application threads inside MPI calls advance operations on this rank, as
  // is the case after finalize_begins(). Unlike callers_only() the result may differ between ranks.
  bool only_callers_advance() const {
    return only_callers_advance_.load(std::memory_order_relaxed);
  }
  // Returns whether the application may call MPI from several threads: while one blocks, another
  // may start operations that later need this rank's help.
  bool several_callers() const { return several_callers_; }
  // Returns whether MPI provides MPI_THREAD_MULTIPLE although the application requested less.
  bool level_is_raised() const { return level_is_raised_; }
  // Returns the cores on which Weft's threads run on this node.
  const NodeCores& node_cores() const { return node_cores_; }
  // Returns what engine auto may use besides progress threads and callers, such as core agents and
  // free cores; equal on all ranks.
  const JobResources& resources() const { return resources_; }
  bool native() const { return scope_ == Scope::nothing; }
  bool takes_all() const { return scope_ == Scope::all; }
  // Returns whether Weft takes over only calls for which no thread calls MPI, so that the
  // application's thread level and blocking calls stay unchanged.
  bool in_memory_only() const { return scope_ == Scope::in_memory; }
  // Returns whether there is a thread for operations that need only memory and the processor.
  bool has_memory_thread() const { return thread_may_ == ThreadMay::use_memory; }
  // Returns whether each rank has a core for the thread that progresses operations in memory,
  // besides the cores on which the node's ranks compute. The result is equal on all ranks.
  bool has_spare_core() const { return core_subscription_ == CoreSubscription::a_core_to_spare; }
  // Returns whether two ranks of a node must share a core. The result is equal on all ranks. It is
  // known only if has_memory_thread() returns true.
  bool ranks_share_cores() const {
    return core_subscription_ == CoreSubscription::cores_are_shared;
  }
  bool observing() const { return observing_; }
  // Returns whether engine auto learns (runtime/adaptive/call_classes.h); equal on all ranks.
  bool learns() const { return learns_by_messages() || learns_in_memory(); }
  // Returns whether ranks compare variants by messages. They do not if a thread may not call the
  // library, because a rank waiting inside the library could not take part. Nor do they if blocking
  // collectives are not offered to Weft, because these would overtake deferred calls.
  bool learns_by_messages() const;
  // Returns whether ranks compare variants in the memory of their node, for which Weft's thread
  // calls no MPI.
  bool learns_in_memory() const;
  // Returns the tag for messages with this number on an internal communicator that is not shared.
  int tag_for(std::uint32_t sequence) const { return static_cast<int>(sequence % tags_); }

  // Returns whether message calls may go directly to the library while no operation of Weft is
  // under way. This requires that no other thread may start one meanwhile, that waits are not
  // observed, and that no other tool is in between, which would need the thread to be marked as
  // inside MPI.
  bool lets_pass_through() const;

  // Returns whether every completion call of the application reaches Weft before any other tool.
  bool completions_are_ours() const { return completions_are_ours_; }

  // Returns whether callers may carry out short collectives inline, that is, inside their start and
  // completion calls, because no other thread or tool needs to see them.
  bool allows_inline_calls() const {
    return completions_are_ours_ && !observing_ && config.watchdog_s == 0 && !may_have_threads_;
  }

  // Returns the calling application thread's track in the trace; nullptr without --trace.
  Trace::Track* application_track();

  void thread_started(const char* name, int index) override;
  void moves_to(int core) override;
  void activity(Activity what) override;

  // Returns the machine and MPI library to which plans apply. The first call reads files; only
  // users of plans need it.
  static const std::string& platform();

  // Stops the threads that carry out operations; from then on callers carry them out. Is called in
  // MPI_Finalize and at process exit.
  void stop_threads();

  const Config config;
  const Library library;
  Summary summary;
  PlanCache plans;
  TrialBudget trial_budget;
  Progress progress;

 protected:
  Runtime(const Config& config, Library library, ThreadMay thread_may, Scope scope);

  // Begins the trace of this thread, the application's main thread.
  void begin_track();
  bool wants_blocking() const;
  bool may_learn() const;

  // The active runtime; nullptr if there is none. It is defined in the class, so that the compiler
  // knows that this library defines it, which saves an instruction in every call.
  static inline std::atomic<Runtime*> active_{nullptr};

  ThreadMay thread_may_;  // tells what Weft's threads may do; constant once active() returns the
                          // object, like the next four members
  bool operators_stay_ = false;
  CoreSubscription core_subscription_ = CoreSubscription::a_core_each;
  NodeCores node_cores_;
  JobResources resources_;
  std::atomic<bool> only_callers_advance_{false};
  bool several_callers_ = false;
  bool several_threads_ = false;  // the application may call MPI from several threads
  bool level_is_raised_ = false;
  bool may_have_threads_ = false;  // the library provides MPI_THREAD_MULTIPLE
  const Scope scope_;
  const bool observing_;
  const bool completions_are_ours_;
  std::uint32_t tags_ = 32767;
  int thread_core_ = -1;              // core of Weft's threads; -1 if they run on the rank's cores
  std::vector<int> core_of_thread_;   // core of each local rank's thread on this node; set if a
                                      // placement policy is followed
  std::unique_ptr<CoreAgent> agent_;  // for engine agent: the core agent, on the rank whose process
                                      // runs it
  std::string why_no_agent_;          // for engine agent: the reason why this rank has no agent
  Trace trace_;
};

[[gnu::always_inline]] inline bool nothing_under_way() {
  return Runtime::active()->progress.under_way() == 0;
}
}  // namespace weft
