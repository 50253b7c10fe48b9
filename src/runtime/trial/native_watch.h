// NativeWatch: lets the ranks compare Weft's variant of a blocking call with the library's again
// after the calls' time has changed (native_comparison.h). Each rank times a few calls of many. The
// ranks agree on the times in their node's memory without waiting (shm/node_comparisons.h), and
// each of them finds at the same call that they have changed. This call begins with the comparison.
// All ranks count the same calls: those of a NativeQuestion on a communicator.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "base/this_thread.h"
#include "select/result_watch.h"
#include "select/trial_budget.h"
#include "shm/node_comparisons.h"

namespace weft {

class NativeWatch {
 public:
  // The numbers that the ranks exchange; they agree on the greatest of each. Times are in ns.
  enum Word : std::size_t {
    kGreatest,  // the least time of this look's calls
    kLeast,     // kLongest_ns minus that time, so that the ranks agree on the least one
    kElapsed,   // the time since MPI_Init
    kSpent,     // the cost of all trials of the process
    kCost,      // the time that the last comparison of these calls took
    kWords
  };
  using Comparisons = NodeComparisons<kWords>;

  // Returns memory that all ranks share; nullopt if there is none left.
  using TakeMemory = std::function<std::optional<SharedWords>()>;

  // take_memory: is called at the first timed call, which is the same on all ranks. Short-lived
  // communicators need no memory then. by_least_time: no rank returns from such a call before all
  // have begun it, so that the time of the rank that came last counts: the others have waited for
  // it. switches: for tests, each look is followed by a comparison.
  NativeWatch(TakeMemory take_memory, int ranks, bool by_least_time, bool switches,
              const TrialBudget& budget)
      : take_memory_(std::move(take_memory)),
        ranks_(ranks),
        by_least_time_(by_least_time),
        switches_(switches),
        budget_(budget),
        calls_left_(rest_after(kRested_ns)) {}

  // Counts a call. Returns true if next_step() must be called.
  bool counts_to_step() { return --calls_left_ <= 0; }
  // Counts a call that the library gets at once, and returns true. Returns false without counting
  // if next_step() must be called for it, or if it comes from inside MPI and does not count.
  bool counts_at_once() {
    if (calls_left_ <= 1 || this_thread.is_inside()) return false;
    --calls_left_;
    return true;
  }

  enum class Step : std::uint8_t {
    none,
    time,    // this call is timed: took() is told its time
    compare  // the ranks compare in this call
  };
  Step next_step();
  void took(std::int64_t ns);
  // Returns whether the ranks have to compare: from Step::compare to compared().
  bool is_in_doubt() const { return is_in_doubt_; }
  // Is told after each comparison whether it has changed the result, and how long it took.
  void compared(bool has_changed, std::int64_t cost_ns);

 private:
  enum class Stage : std::uint8_t { resting, timing, agreeing };

  std::int64_t rest_after(std::int64_t call_ns) const;
  bool has_memory();
  void publish();
  Step look();

  static constexpr std::int64_t kLongest_ns = INT64_MAX / 4;
  // A look times kTimed calls in a row, of which the shortest counts. The ranks look for what they
  // have agreed on kAgreeing calls later. The next look follows after calls of kRested_ns in all,
  // within the limits, because a look takes about a microsecond. A look at long calls then comes
  // every 64 calls.
  static constexpr int kTimed = 2, kAgreeing = 16;
  static constexpr std::int64_t kRested_ns = 200'000, kLeastRest = 46, kMostRest = 1000;

  const TakeMemory take_memory_;
  const int ranks_;
  std::optional<Comparisons> comparisons_;  // nullopt before the first timed call
  const bool by_least_time_;
  const bool switches_;
  const TrialBudget& budget_;
  ResultWatch watch_;
  std::int64_t calls_left_;  // number of calls up to the next step
  Stage stage_ = Stage::resting;
  bool is_in_doubt_ = false;
  int timed_ = 0;  // number of this look's calls
  std::int64_t shortest_ns_ = kLongest_ns;
  std::int64_t cost_ns_ = 0;  // time of the last comparison on this rank
};

}  // namespace weft
