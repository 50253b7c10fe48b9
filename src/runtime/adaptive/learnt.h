// Learnt holds what earlier runs of this program have learnt about the best variants (engine and
// algorithm) for its collective calls, and collects what this run leaves to later ones. Both are
// stored in the file of plans (select/plan_cache.h). Rank 0 reads the file in MPI_Init and sends
// its contents to the other ranks, so that all ranks have the same.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/job/records.h"
#include "select/learner.h"
#include "select/plan_cache.h"
#include "select/trial_budget.h"
#include "select/variants.h"

namespace weft {

class Communicator;
class Runtime;

class Learnt {
 public:
  // Returns the only object of this process.
  static Learnt& own();

  // Reads the results of earlier runs; collective over all ranks.
  void read(Runtime& runtime);
  // Returns the results of earlier runs for a call class; empty if there are none. There is one
  // result for each position in the sequence of such calls (cycle) that the program repeats. The
  // result is equal on all ranks.
  std::vector<Learner::Known> find(const Communicator& communicator, const CallClassKey& key,
                                   const std::vector<Choice>& variants) const;
  // Records what this run has learnt about collectives on a communicator. It must be called before
  // Weft drops its data on the communicator.
  void note(const Communicator& communicator);
  // Records what this run has learnt about one position in the sequence of calls (cycle) of a call
  // class that the program repeats.
  void note(const Communicator& communicator, CallClassRecord record);
  // Returns the results as entries for the file of plans. A rank returns those of the communicators
  // in which it is rank 0. It is called in MPI_Finalize.
  std::vector<PlanCache::Entry> plans(const Config& config) const;

  // Returns the results for the summary. It is called in MPI_Finalize.
  LearntReport report(const TrialBudget& budget) const;

 private:
  std::string words_of_call_class(const Communicator& communicator, const CallClassKey& key) const;
  bool is_of_its_call_class(const CallClassRecord& record) const;

  // True if the user has switched shared memory off, so that it is not known which ranks share a
  // node.
  bool by_messages_ = false;
  // True if Weft has left the application's thread level unchanged. In this case, results are
  // stored separately, since other variants (engine and algorithm) can be chosen.
  bool in_memory_ = false;
  struct Known {
    std::string variant;
    std::string times;  // the times of the variants that were tried, as text
    std::size_t cycle = 1;
    int depth = 1;
  };
  std::map<std::string, Known> known_;  // results of earlier runs, by the key in the file of plans
  std::mutex mutex_;                    // guards records_
  // The results of this run, by key and position. If several communicators have the same key,
  // results that this run has measured are preferred to older ones, and then those of more calls.
  std::map<std::string, CallClassRecord> records_;
};

}  // namespace weft
