// Learnt: what earlier runs of this program have found at its sites, and what this one leaves to
// later ones. It lies with the plans (select/plan_cache.h). Rank 0 reads it in MPI_Init and tells
// the others, so that all know alike.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "library/generated/call_ids.h"
#include "schedule/collective.h"
#include "select/learner.h"
#include "select/plan_cache.h"
#include "select/ways.h"

namespace weft {

class Communicator;
class Runtime;

struct SiteKey {
  Kind kind{};
  int size_class = 0;   // the payload has so many binary digits; -1: not known as a whole
  bool kernel = false;  // a reduction by a predefined operator of a predefined type
  bool blocking = false;

  bool operator==(const SiteKey&) const = default;
};

// "allreduce, predefined operator, below 1 MiB"
std::string words_of(const SiteKey& key);

// What became of a site, for summary and cache.
struct SiteRecord {
  CallId id{};
  SiteKey site_key;
  std::string key;                      // with the communicator's layout; of what Learnt has noted
  std::size_t position = 0, cycle = 1;  // of the calls, as the learner has them
  int rank = 0, ranks = 0;
  std::vector<std::string> ways;
  Learner::Found found;
  std::vector<std::string> places;  // of its callers on rank 0, as caller_words() has them
};

// What this run has learnt, for the summary.
struct LearntReport {
  std::vector<SiteRecord> sites;
  std::int64_t trials_cost_ns = 0;  // of all trials that this rank took part in
  std::int64_t won_ns = 0;          // by the ways that were found
};
// A line for each site; the members of a JSON array.
std::string text_of(const LearntReport& report, double seconds);
std::string json_of(const LearntReport& report);

class Learnt {
 public:
  // Collective over all ranks.
  void read(Runtime& runtime);
  // Of each position of the cycle, the same on all ranks; empty: nothing is known.
  std::vector<Learner::Known> find(const Communicator& communicator, const SiteKey& key,
                                   const std::vector<Choice>& ways) const;
  // The communicator is about to be forgotten.
  void note(const Communicator& communicator);
  // The same of one site, or of one position of it.
  void note(const Communicator& communicator, SiteRecord record);
  // For the file, in MPI_Finalize: what this rank has found as rank 0 of communicators.
  std::vector<PlanCache::Entry> plans(const Config& config) const;

  LearntReport report(const TrialBudget& budget) const;  // in MPI_Finalize

 private:
  std::string words_of_site(const Communicator& communicator, const SiteKey& key) const;
  bool is_of_its_site(const SiteRecord& record) const;

  bool by_messages_ = false;  // layouts are not known
  bool in_memory_ = false;    // the level of threads is kept: other ways apply
  struct Known {
    std::string way;
    std::string times;  // of the ways that were tried
    std::size_t cycle = 1;
    int depth = 1;
  };
  std::map<std::string, Known> known_;  // by key
  std::mutex mutex_;                    // guards records_
  // By key and position, of the communicator with the most calls.
  std::map<std::string, SiteRecord> records_;
};

}  // namespace weft
