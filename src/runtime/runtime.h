// Runtime: everything Weft keeps between MPI_Init and MPI_Finalize, in one place.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/config.h"
#include "engine/progress.h"
#include "runtime/adaptive/learnt.h"
#include "runtime/comm/communicators.h"
#include "runtime/job/epoch.h"
#include "runtime/job/summary.h"
#include "runtime/node/shared_core.h"
#include "runtime/request/accesses.h"
#include "runtime/request/in_hand.h"
#include "runtime/request/requests.h"
#include "runtime/request/transfers.h"
#include "select/plan_cache.h"
#include "select/selector.h"
#include "select/split_rule.h"
#include "select/trial_budget.h"
#include "select/ways.h"
#include "trace/trace.h"

namespace weft {

// What of the job's collectives may be Weft's.
enum class Scope : std::uint8_t { all, in_memory, nothing };

// What ranks have of the node's cores, from the least on.
enum class Room : std::uint8_t { cores_are_shared, a_core_each, a_core_to_spare };

class Runtime final : public Observer {
 public:
  // nullptr before MPI_Init, after MPI_Finalize, and where Weft stands aside.
  static Runtime* active() { return active_.load(std::memory_order_acquire); }

  // Right after the MPI library's own initialisation; collective over all ranks. level_kept: the
  // level of threads is the application's own, by keeps_level(). asked_level: by the application.
  static void begin(const Config& config, int asked_level, int thread_level, bool level_kept);
  // The application has called MPI_Finalize, but its callbacks may still use all of MPI. From here
  // on Weft's threads call a library no more that takes no locks then.
  void finalize_begins();
  // Within the MPI library's finalisation, while the library can still do everything; collective
  // over all ranks.
  static void end();
  // The library finalises in the last MPI_Session_finalize where a session outlives MPI_Finalize.
  bool ends_with_last_session() const {
    return library == Library::mpich || library == Library::intelmpi;
  }
  // The library is gone before end() has been called.
  static void end_without_library();

  Runtime(const Config& config, Library library, ThreadMay thread_may, Scope scope);

  // A thread may call the MPI library. False: engine function stands in for the others.
  bool threads_allowed() const { return thread_may_ == ThreadMay::do_all; }
  // The application's operators expect no other thread than its own: on some rank it has not asked
  // for MPI_THREAD_MULTIPLE, and Weft has threads. The same on all ranks.
  bool operators_stay() const { return operators_stay_; }
  // Only callers inside MPI calls advance operations, so that no such call may block.
  bool callers_only() const { return !threads_allowed() && scope_ == Scope::all; }
  // callers_only() of this rank alone, since finalize_begins(). Other ranks do not go by it.
  bool callers_go_on() const { return callers_go_on_.load(std::memory_order_relaxed); }
  // The application may call MPI from several threads at a time: while one blocks, another may
  // start what needs this rank's later help.
  bool several_callers() const { return several_callers_; }
  // The application has asked for less than MPI_THREAD_MULTIPLE, which it has.
  bool level_is_raised() const { return level_is_raised_; }
  // Where Weft's threads run on this node.
  const NodeCores& node_cores() const { return node_cores_; }
  // What engine auto may try beside threads and callers; the same on all ranks.
  const Beside& beside() const { return beside_; }
  bool native() const { return scope_ == Scope::nothing; }
  bool takes_all() const { return scope_ == Scope::all; }
  // Only what needs no MPI call of a thread's, so that the level of threads and blocking calls stay
  // as they are.
  bool in_memory_only() const { return scope_ == Scope::in_memory; }
  // There is a thread for what needs memory and the processor alone.
  bool has_memory_thread() const { return thread_may_ == ThreadMay::use_memory; }
  // Each rank has a core left for it, beside those that the node's ranks compute on. The same on
  // all ranks.
  bool has_spare_core() const { return room_ == Room::a_core_to_spare; }
  // More ranks run on some cores than there are of these. The same on all ranks; only where there
  // is such a thread.
  bool ranks_share_cores() const { return room_ == Room::cores_are_shared; }
  bool observing() const { return observing_; }
  // Engine auto learns (runtime/adaptive/sites.h): the same on all ranks.
  bool learns() const { return learns_by_messages() || learns_in_memory(); }
  // Ranks compare by messages. Not where only callers go on with operations, nor where a thread may
  // not call the library: a rank that waits inside the library could then not take part in a
  // comparison. Nor where blocking collectives are not offered to Weft, which would go ahead of
  // calls that are held.
  bool learns_by_messages() const;
  // Ranks compare in the memory of their node, on which Weft's thread calls no MPI.
  bool learns_in_memory() const;
  // Collective over `comm`: Weft's side of it.
  void add_communicator(MPI_Comm comm, const Hints& hints);
  Engine engine_for(const Communicator& communicator) const;
  // Of messages on a communicator of this rank alone.
  int tag_for(std::uint32_t sequence) const { return static_cast<int>(sequence % tags_); }

  // Calls for messages may go straight to the library while nothing of Weft's is under way: no
  // other thread of the application's may start something meanwhile, nobody wants to know where it
  // waits, and no other tool is between, which would need the thread to be marked as inside MPI.
  bool lets_straight_on() const;

  // Every completion call of the application reaches Weft first: no other tool is before it.
  bool completions_are_ours() const { return completions_are_ours_; }

  // Where a thread of this rank's goes, by the policy and the ranks of `comm` on this node; -1:
  // beside the rank. Collective over `comm`.
  static int core_for(const PlacementPolicy& policy, MPI_Comm comm);
  // The same for the progress threads of all ranks.
  void place_threads();

  // Short collectives for requests may stay in their caller's hand: nobody else looks at them.
  bool keeps_in_hand() const {
    return completions_are_ours_ && !observing_ && config.watchdog_s == 0 && !may_have_threads_;
  }

  // The calling application thread's track; nullptr without --trace.
  Trace::Track* application_track();

  void thread_started(const char* name, int index) override;
  void moves_to(int core) override;
  void activity(Activity what) override;
  void keep_library_going() override;
  void agent_has_ended() override;

  // Where plans hold: machine and MPI library. Read from files when it is first asked for, which
  // only those do who look for plans.
  static const std::string& platform();

  // Weft's threads that go on with operations: from now on nobody does but callers. For finalize
  // and exit.
  void stop_threads();

  const Config config;
  const Library library;
  Communicators communicators;
  Requests requests;
  InHand in_hand;
  Summary summary;
  PlanCache plans;
  Learnt learnt;
  TrialBudget trial_budget;
  Progress progress;
  Transfers transfers{progress};
  Accesses accesses{progress};

 private:
  bool drives_transfers() const { return threads_allowed() && config.engine != Engine::function; }
  void agree_on_threads(int rank, int asked_level);
  void share_cores();
  void agree_on_ways();
  void prepare_initialisations(int rank);
  static void nothing_goes_straight();
  void stand_aside();
  // A sentence about the whole run, for the summary; "": none.
  std::string remark() const;
  void write_trace(int rank, int ranks);

  // Defined here, and so known to be of this library: one instruction less in every call.
  static inline std::atomic<Runtime*> active_{nullptr};

  ThreadMay thread_may_;           // final before active()
  bool operators_stay_ = false;    // the same
  Room room_ = Room::a_core_each;  // the same
  NodeCores node_cores_;           // the same
  Beside beside_;                  // the same
  std::atomic<bool> callers_go_on_{false};
  bool several_callers_ = false;
  bool level_is_raised_ = false;
  bool may_have_threads_ = false;  // the library lets all threads call, and says so when asked
  bool may_learn() const;
  const Scope scope_;
  const bool observing_;
  const bool completions_are_ours_;
  std::uint32_t tags_ = 32767;
  int thread_core_ = -1;              // -1: where the rank itself runs
  std::vector<int> core_of_thread_;   // of all ranks of this node, where a placement is followed
  std::unique_ptr<CoreAgent> agent_;  // of engine agent, where this rank has it
  std::string why_no_agent_;          // for this rank, of engine agent
  Trace trace_;
  MPI_Comm reports_{};  // of all ranks, for what they tell each other at the end; where observing_
};

[[gnu::always_inline]] inline bool nothing_under_way() {
  return Runtime::active()->progress.under_way() == 0;
}
// Of calls for requests. A runtime is active where any may go straight on.
inline bool nothing_followed(const Runtime& runtime) {
  return !runtime.requests.watching() && known_transfers.load(std::memory_order_relaxed) == 0;
}
// Whether Weft has nothing to do with a call for these: it holds none, or has nothing under way and
// these are not among them.
[[gnu::always_inline]] inline bool only_library(const MPI_Request* requests, int count = 1) {
  constexpr int kMostLookedAt = 16;
  if (straight_epoch.load(std::memory_order_acquire) == 0) return false;
  const Runtime& runtime = *Runtime::active();
  if (!nothing_followed(runtime)) return false;
  if (runtime.requests.held() == 0 && !runtime.in_hand.any()) return true;
  if (!requests || count > kMostLookedAt || !nothing_under_way() ||
      holding.load(std::memory_order_relaxed) != 0)
    return false;
  for (int i = 0; i < count; ++i)
    if (Requests::may_be_held(requests[i])) return false;
  return true;
}
// The same of one that starts a message.
template <class Count>  // as the call has it: each conversion is an instruction
bool is_short(Count count, MPI_Datatype type) {
  const KnownTypes::Known& known = known_types.at(type);
  return known.type == type && count < known.least_count &&
         known_types.epoch == straight_epoch.load(std::memory_order_acquire);
}

}  // namespace weft
