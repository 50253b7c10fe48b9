// Learnt: the results that earlier runs of this program found for its call classes, and those that
// this run leaves to later ones. They are stored with the plans (select/plan_cache.h). Rank 0 reads
// them in MPI_Init and sends them to the others, so that all ranks have the same.
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
  // Returns the object of this process.
  static Learnt& own();

  // Reads the results of earlier runs. Collective over all ranks.
  void read(Runtime& runtime);
  // Returns the results for each position in the class's cycle of calls, the sequence that the
  // program repeats; equal on all ranks; empty if there are none.
  std::vector<Learner::Known> find(const Communicator& communicator, const CallClassKey& key,
                                   const std::vector<Choice>& variants) const;
  // Records a communicator's call classes before the communicator is forgotten.
  void note(const Communicator& communicator);
  // Records a call class, or one position in the sequence of calls that it repeats.
  void note(const Communicator& communicator, CallClassRecord record);
  // Returns the entries for the file of plans, in MPI_Finalize: the results of communicators of
  // which this rank is rank 0.
  std::vector<PlanCache::Entry> plans(const Config& config) const;

  LearntReport report(const TrialBudget& budget) const;  // is called in MPI_Finalize

 private:
  std::string words_of_call_class(const Communicator& communicator, const CallClassKey& key) const;
  bool is_of_its_call_class(const CallClassRecord& record) const;

  bool by_messages_ = false;  // the user has switched off shared memory, so that it is not known
                              // which ranks share a node
  bool in_memory_ = false;  // the application's thread level is kept, so that other variants apply
  struct Known {
    std::string variant;
    std::string times;  // times of the variants that were tried
    std::size_t cycle = 1;
    int depth = 1;
  };
  std::map<std::string, Known> known_;  // keyed by plan key
  std::mutex mutex_;                    // guards records_
  // Records by key and position. If several communicators have equal keys, a record with new
  // results is preferred, then the one with more calls.
  std::map<std::string, CallClassRecord> records_;
};

}  // namespace weft
