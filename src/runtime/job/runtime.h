// Runtime: what the whole process knows between MPI_Init and MPI_Finalize: configuration, library,
// what the ranks have agreed on, progress, summary and plans.
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

// Says which of the job's collectives may be Weft's.
enum class Scope : std::uint8_t { all, in_memory, nothing };

// Says how many of the node's cores ranks have, the least first.
enum class CoreSubscription : std::uint8_t { cores_are_shared, a_core_each, a_core_to_spare };

class Runtime : public Observer {
 public:
  // Returns nullptr before MPI_Init, after MPI_Finalize, and if Weft is inactive.
  static Runtime* active() { return active_.load(std::memory_order_acquire); }

  // Returns whether the library finalises in the last MPI_Session_finalize if a session outlives
  // MPI_Finalize.
  bool ends_with_last_session() const {
    return library == Library::mpich || library == Library::intelmpi;
  }
  // Returns whether a thread may call the MPI library; otherwise engine function replaces the
  // others.
  bool threads_allowed() const { return thread_may_ == ThreadMay::do_all; }
  // Returns whether only callers may run the application's operators: on some rank it has not asked
  // for MPI_THREAD_MULTIPLE, and Weft has threads. The answer is the same on all ranks.
  bool operators_stay() const { return operators_stay_; }
  // Returns whether only callers inside MPI calls advance operations, so that no such call may
  // block.
  bool callers_only() const { return !threads_allowed() && scope_ == Scope::all; }
  // Returns whether that holds on this rank alone, since finalize_begins(). Other ranks do not
  // depend on it.
  bool only_callers_advance() const {
    return only_callers_advance_.load(std::memory_order_relaxed);
  }
  // Returns whether the application may call MPI from several threads: while one blocks, another
  // may start operations that need this rank's later help.
  bool several_callers() const { return several_callers_; }
  // Returns whether the application has asked for less than MPI_THREAD_MULTIPLE, which it has got.
  bool level_is_raised() const { return level_is_raised_; }
  // Returns the cores on which Weft's threads run on this node.
  const NodeCores& node_cores() const { return node_cores_; }
  // Returns what engine auto may try besides threads and callers; the same on all ranks.
  const JobResources& resources() const { return resources_; }
  bool native() const { return scope_ == Scope::nothing; }
  bool takes_all() const { return scope_ == Scope::all; }
  // Returns whether Weft takes only calls for which no thread calls MPI, so that thread level and
  // blocking calls stay as they are.
  bool in_memory_only() const { return scope_ == Scope::in_memory; }
  // Returns whether there is a thread for operations that need only memory and the processor.
  bool has_memory_thread() const { return thread_may_ == ThreadMay::use_memory; }
  // Returns whether each rank has a core for that thread besides those on which the node's ranks
  // compute. The answer is the same on all ranks.
  bool has_spare_core() const { return core_subscription_ == CoreSubscription::a_core_to_spare; }
  // Returns whether two ranks of a node have to share a core. The answer is the same on all ranks.
  // It is known only if has_memory_thread().
  bool ranks_share_cores() const {
    return core_subscription_ == CoreSubscription::cores_are_shared;
  }
  bool observing() const { return observing_; }
  // Returns whether engine auto learns (runtime/adaptive/call_classes.h); the same on all ranks.
  bool learns() const { return learns_by_messages() || learns_in_memory(); }
  // Returns whether ranks compare by messages. They do not if only callers progress operations, or
  // if a thread may not call the library: a rank waiting inside the library could not take part.
  // Nor do they if blocking collectives are not offered to Weft, which would overtake deferred
  // calls.
  bool learns_by_messages() const;
  // Returns whether ranks compare in the memory of their node, for which Weft's thread calls no
  // MPI.
  bool learns_in_memory() const;
  // Returns the tag for messages on a communicator of this rank alone.
  int tag_for(std::uint32_t sequence) const { return static_cast<int>(sequence % tags_); }

  // Returns whether calls for messages may go directly to the library while nothing of Weft's is
  // under way: no other thread may start something meanwhile, nobody observes waits, and no
  // other tool is in between, which would need the thread to be marked as inside MPI.
  bool lets_pass_through() const;

  // Returns whether every completion call of the application reaches Weft first, before any other
  // tool.
  bool completions_are_ours() const { return completions_are_ours_; }

  // Returns whether short collectives with requests may be carried out inline by their caller:
  // nobody else looks at them.
  bool allows_inline_calls() const {
    return completions_are_ours_ && !observing_ && config.watchdog_s == 0 && !may_have_threads_;
  }

  // Returns the calling application thread's track; nullptr without --trace.
  Trace::Track* application_track();

  void thread_started(const char* name, int index) override;
  void moves_to(int core) override;
  void activity(Activity what) override;

  // Returns the machine and MPI library for which plans hold. The first call reads files; only
  // users of plans need it.
  static const std::string& platform();

  // Stops the threads that carry out operations; from now on only callers do. For finalize and
  // exit.
  void stop_threads();

  const Config config;
  const Library library;
  Summary summary;
  PlanCache plans;
  TrialBudget trial_budget;
  Progress progress;

 protected:
  Runtime(const Config& config, Library library, ThreadMay thread_may, Scope scope);

  // This thread's track is that of the application's main thread.
  void begin_track();
  bool wants_blocking() const;
  bool may_learn() const;

  // Is defined here, so that it is known to be of this library, which saves an instruction in every
  // call.
  static inline std::atomic<Runtime*> active_{nullptr};

  ThreadMay thread_may_;                                                // final before active()
  bool operators_stay_ = false;                                         // the same
  CoreSubscription core_subscription_ = CoreSubscription::a_core_each;  // the same
  NodeCores node_cores_;                                                // the same
  JobResources resources_;                                              // the same
  std::atomic<bool> only_callers_advance_{false};
  bool several_callers_ = false;
  bool several_threads_ = false;  // of the application's may call, whoever takes the calls
  bool level_is_raised_ = false;
  bool may_have_threads_ = false;  // the library lets all threads call, and says so when asked
  const Scope scope_;
  const bool observing_;
  const bool completions_are_ours_;
  std::uint32_t tags_ = 32767;
  int thread_core_ = -1;              // -1: where the rank itself runs
  std::vector<int> core_of_thread_;   // of all ranks of this node, where a placement is followed
  std::unique_ptr<CoreAgent> agent_;  // of engine agent, where this rank has it
  std::string why_no_agent_;          // for this rank, of engine agent
  Trace trace_;
};

[[gnu::always_inline]] inline bool nothing_under_way() {
  return Runtime::active()->progress.under_way() == 0;
}
}  // namespace weft
