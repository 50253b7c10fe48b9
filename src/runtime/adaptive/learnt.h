// Learnt: the results of earlier runs of this program at its call classes, and those that this run
// leaves to later ones. They are kept with the plans (select/plan_cache.h). Rank 0 reads them in
// MPI_Init and sends them to the others, so that all have the same.
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

  // Collective over all ranks.
  void read(Runtime& runtime);
  // Returns the results for each position of the cycle, the same on all ranks; empty if there are
  // none.
  std::vector<Learner::Known> find(const Communicator& communicator, const CallClassKey& key,
                                   const std::vector<Choice>& variants) const;
  // Records a communicator's call classes before it is forgotten.
  void note(const Communicator& communicator);
  // Records one call class, or one position of it.
  void note(const Communicator& communicator, CallClassRecord record);
  // Returns the entries for the file, in MPI_Finalize: what this rank found as rank 0 of
  // communicators.
  std::vector<PlanCache::Entry> plans(const Config& config) const;

  LearntReport report(const TrialBudget& budget) const;  // in MPI_Finalize

 private:
  std::string words_of_call_class(const Communicator& communicator, const CallClassKey& key) const;
  bool is_of_its_call_class(const CallClassRecord& record) const;

  bool by_messages_ = false;  // layouts are not known
  bool in_memory_ = false;    // the level of threads is kept: other variants apply
  struct Known {
    std::string variant;
    std::string times;  // of the variants that were tried
    std::size_t cycle = 1;
    int depth = 1;
  };
  std::map<std::string, Known> known_;  // by key
  std::mutex mutex_;                    // guards records_
  // Records by key and position, of the communicator with the most calls.
  std::map<std::string, CallClassRecord> records_;
};

}  // namespace weft
