// Runtime holds Weft's state between MPI_Init and MPI_Finalize: the configuration, the kind of MPI
// library, facts on which the ranks have agreed, the progress of collectives, the summary and the
// file of plans.
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

// Says which collectives of the job Weft may carry out. in_memory: only those that need nothing but
// the node's shared memory.
enum class Scope : std::uint8_t { all, in_memory, nothing };

// Says how many cores the ranks of a node have, from fewest to most: fewer cores than ranks, one
// core for each rank, or one more for each rank's progress thread.
enum class CoreSubscription : std::uint8_t { cores_are_shared, a_core_each, a_core_to_spare };

class Runtime : public Observer {
 public:
  // Returns the runtime; nullptr before MPI_Init, after MPI_Finalize, and if Weft is inactive.
  static Runtime* active() { return active_.load(std::memory_order_acquire); }

  // Returns whether the MPI library, if a session is still open at MPI_Finalize, finalises only in
  // the last MPI_Session_finalize.
  bool ends_with_last_session() const {
    return library == Library::mpich || library == Library::intelmpi;
  }
  // Returns whether Weft's threads may call the MPI library. If not, engine function takes the
  // place of engines that need threads.
  bool threads_allowed() const { return thread_may_ == ThreadMay::do_all; }
  // Returns whether the application's reduction operators may run only on application threads
  // inside MPI calls. This is so if Weft has threads and the application of some rank has not
  // requested MPI_THREAD_MULTIPLE. The result is equal on all ranks.
  bool operators_stay() const { return operators_stay_; }
  // Returns whether collectives advance only while application threads are inside MPI calls. In
  // this case no MPI call may block inside the MPI library.
  bool callers_only() const { return !threads_allowed() && scope_ == Scope::all; }
  // Returns whether on this rank, now, collectives advance only while application threads are
  // inside MPI calls. It becomes true in Lifecycle::finalize_begins(). Unlike callers_only() the
  // result may differ between ranks.
  bool only_callers_advance() const {
    return only_callers_advance_.load(std::memory_order_relaxed);
  }
  // Returns whether the application may call MPI from several threads at a time. While one thread
  // blocks, another may then start collectives that later need help.
  bool several_callers() const { return several_callers_; }
  // Returns whether MPI was initialised with MPI_THREAD_MULTIPLE although the application requested
  // less.
  bool level_is_raised() const { return level_is_raised_; }
  // Returns how many ranks and how many free cores this node has.
  const NodeCores& node_cores() const { return node_cores_; }
  // Returns which resources engine auto may use besides progress threads and calling threads: core
  // agents and free cores. The result is equal on all ranks.
  const JobResources& resources() const { return resources_; }
  // Returns whether the progress thread of this process is the agent of its core.
  bool serves_as_agent() const { return agent_ != nullptr; }
  bool native() const { return scope_ == Scope::nothing; }
  bool takes_all() const { return scope_ == Scope::all; }
  // Returns whether Weft carries out only collectives for which none of its threads calls MPI. The
  // application's thread level and the form of its blocking calls are then unchanged.
  bool in_memory_only() const { return scope_ == Scope::in_memory; }
  // Returns whether there is a progress thread that only uses shared memory and never calls MPI.
  bool has_memory_thread() const { return thread_may_ == ThreadMay::use_memory; }
  // Returns whether each rank has a core for its progress thread besides the cores on which the
  // ranks compute. The result is equal on all ranks.
  bool has_spare_core() const { return core_subscription_ == CoreSubscription::a_core_to_spare; }
  // Returns whether any two ranks of a node share a core. The result is equal on all ranks, but
  // valid only if has_memory_thread() returns true.
  bool ranks_share_cores() const {
    return core_subscription_ == CoreSubscription::cores_are_shared;
  }
  bool observing() const { return observing_; }
  // Returns whether engine auto tries several engines and algorithms, and learns which is best
  // (runtime/adaptive/call_classes.h). The result is equal on all ranks.
  bool learns() const { return learns_by_messages() || learns_in_memory(); }
  // Returns whether engine auto learns and the ranks compare times by messages. Two conditions must
  // hold. Weft's thread must be allowed to call MPI: otherwise a rank that waits inside the MPI
  // library could not take part. Blocking collectives must be offered to Weft: otherwise they would
  // overtake collectives whose start Weft has deferred.
  bool learns_by_messages() const;
  // Returns whether engine auto learns and the ranks compare times in shared memory, for which
  // Weft's thread makes no MPI calls.
  bool learns_in_memory() const;
  // Returns the tag of the collective with this number on an unshared internal communicator.
  int tag_for(std::uint32_t sequence) const { return static_cast<int>(sequence % tags_); }

  // Returns whether the application's messages may go directly to the MPI library while no
  // collective of Weft's is active. This requires that no other thread can start one meanwhile,
  // that the watchdog is off, and that no other PMPI tool comes after Weft: such a tool's calls
  // must be recognised as nested.
  bool lets_pass_through() const;

  // Returns whether all completion calls of the application reach Weft before any other PMPI tool.
  bool completions_are_ours() const { return completions_are_ours_; }

  // Returns whether the calling thread may carry out a short collective alone (inline): inside the
  // start call and the completion call. This requires that no other thread, tool or report must see
  // the collective.
  bool allows_inline_calls() const {
    return completions_are_ours_ && !observing_ && config.watchdog_s == 0 && !may_have_threads_;
  }

  // Returns the track of the calling application thread in the trace; nullptr if no trace is
  // requested.
  Trace::Track* application_track();

  void thread_started(const char* name, int index) override;
  void moves_to(int core) override;
  void activity(Activity what) override;

  // Returns the machine and the MPI library as text. Measured plans apply only where this text is
  // equal. The first call reads files, so it should be made only if plans are used.
  static const std::string& platform();

  // Stops Weft's threads. From then on, collectives advance only while application threads are
  // inside MPI calls. It is called in MPI_Finalize and when the process exits.
  void stop_threads();

  const Config config;
  const Library library;
  Summary summary;
  PlanCache plans;
  TrialBudget trial_budget;
  Progress progress;

 protected:
  Runtime(const Config& config, Library library, ThreadMay thread_may, Scope scope);

  // Begins the trace of this thread, which is the application's main thread.
  void begin_track();
  bool wants_blocking() const;
  bool may_learn() const;

  // The active runtime; nullptr if there is none. It is defined in the class, so that the compiler
  // knows that it belongs to this library. This saves an instruction in every call.
  static inline std::atomic<Runtime*> active_{nullptr};

  // Tells what Weft's threads may do. This and the following four members do not change once
  // active() returns the object.
  ThreadMay thread_may_;
  bool operators_stay_ = false;
  CoreSubscription core_subscription_ = CoreSubscription::a_core_each;
  NodeCores node_cores_;
  JobResources resources_;
  std::atomic<bool> only_callers_advance_{false};
  bool several_callers_ = false;
  // Whether the application may call MPI from several threads at a time.
  bool several_threads_ = false;
  bool level_is_raised_ = false;
  bool may_have_threads_ = false;  // whether the MPI library provides MPI_THREAD_MULTIPLE
  const Scope scope_;
  const bool observing_;
  const bool completions_are_ours_;
  std::uint32_t tags_ = 32767;
  int thread_core_ = -1;              // core of Weft's threads; -1 if they run on the rank's cores
  std::vector<int> core_of_thread_;   // core of each local rank's thread on this node; set if a
                                      // placement policy is followed
  std::unique_ptr<CoreAgent> agent_;  // for engine agent: the core agent, on the rank whose
                                      // progress thread serves as it
  std::string why_no_agent_;          // for engine agent: the reason why this rank has no agent
  Trace trace_;
};

[[gnu::always_inline]] inline bool nothing_under_way() {
  return Runtime::active()->progress.under_way() == 0;
}
}  // namespace weft
