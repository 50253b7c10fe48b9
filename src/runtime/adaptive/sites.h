// Sites: the classes of calls about which engine `auto` learns. A site is what all ranks can tell
// apart: the collectives of one kind and about one size on one communicator. The place in the
// program is not part of it, since ranks may make one collective from different places. Ranks agree
// by comparisons, which begin with a call of the site and take effect some calls later: allreduces
// of Weft's own or, on one node, in its memory (docs/inside/learning.md).
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "library/generated/call_ids.h"
#include "runtime/comm/communicators.h"
#include "runtime/job/records.h"
#include "runtime/job/runtime.h"
#include "select/learner.h"
#include "select/sites_in_use.h"
#include "select/ways.h"
#include "shm/node_comparisons.h"

namespace weft {

class Comparison;
class Sites;

using ComparisonsInMemory = NodeComparisons<std::tuple_size_v<Learner::Words>>;

struct Site {
  Site(Sites& among, CallId id, const SiteKey& key, std::vector<Choice> ways,
       const Learner::Settings& settings, TrialBudget& budget);
  ~Site();
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  Sites& among;     // of the same communicator
  const CallId id;  // of its first call
  const SiteKey key;
  const std::vector<Choice> ways;
  Learner learner;
  std::shared_ptr<Comparison> comparison;        // under way, by messages; else nullptr
  std::optional<ComparisonsInMemory> in_memory;  // none: ranks compare by messages
  CallsMade made;                                // by the application
  std::atomic<int> in_flight{0};                 // started here, not completed by the application
  std::vector<std::uintptr_t> callers;  // the first few, while the site learns; for reports

  // Is called when the application makes a call of the site.
  void look_at_caller();

 private:
  int looks_at_callers_ = 0;
};

// The sites of a communicator. Memory is bounded: those that are no longer called make room for
// others.
class Sites {
 public:
  // Returns the site of the call that the application makes now.
  template <class Make>  // makes a std::unique_ptr<Site>
  Site* find_or_make(const SiteKey& key, Make make) {
    Site* site = in_use_.find_or_make(key, make);
    return site ? site : &without_room(key.blocking);
  }
  // Counts a call of the site, in the order of the application's calls, whether they are deferred
  // or not, since that order is the same on all ranks.
  void count_call(Runtime& runtime, const Communicator& communicator, Site& site) {
    if (in_use_.count_call(site.made)) [[unlikely]]
      forgotten(runtime, communicator);
  }

  // Returns the memory in which the ranks of a communicator on one node compare for this site,
  // which is then never forgotten; nothing, on all ranks alike, if `room` is used up. Must be
  // called in the order of the calls.
  std::optional<SharedWords> memory_for(const SiteKey& key, SegmentRoom& room);

  // Returns false for programs that always come with new sites: they would try most of the time.
  bool has_free_slots() const { return !in_use_.some_were_forgotten(); }

  TrialTurn turn;

  std::vector<SiteRecord> records(const Communicator& communicator) const;

  // Drops comparisons under way, which would keep the communicator alive.
  void forget_comparisons();

 private:
  Site& without_room(bool blocking);
  void forgotten(Runtime& runtime, const Communicator& communicator);

  SitesInUse<Site> in_use_;
  std::shared_ptr<std::byte> memory_;  // for comparisons there; nullptr: none was needed
  bool has_no_memory_ = false;         // there was no room for it
  // The sites for all calls without room. They go by the rule, and nothing is learnt about them.
  std::array<std::unique_ptr<Site>, 2> without_room_;
};

// The time at which the application made a call, and the number of the site's calls in flight then.
struct Made {
  std::int64_t at_ns = 0;  // only where the learner wants to know
  int in_flight = 0;
};

// Returns the way of the site's next call; nothing if it is not known yet, which does not happen if
// ranks compare in memory. May begin a comparison.
std::optional<int> next_way(Runtime& runtime, CallId id, Communicator& communicator, Site& site,
                            const Made& made);
// Counts the call that the application makes now, and returns its way if the learner has nothing to
// note. Otherwise next_way_now() must be called.
inline std::optional<int> next_way_at_once(Runtime& runtime, Communicator& communicator,
                                           Site& site) {
  site.among.count_call(runtime, communicator, site);
  return site.learner.next_at_once();
}
// Returns the way of the current call like next_way(), and may help first.
std::optional<int> next_way_now(Runtime& runtime, CallId id, Communicator& communicator,
                                Site& site);

// Returns the way of a blocking call; waits until it is known, that is, until all ranks have begun
// an earlier call of the site.
int next_way_in_call(Runtime& runtime, CallId id, Communicator& communicator, Site& site);

// No comparison under way keeps the communicator any longer, which is about to go.
void forget_comparisons(Communicator& communicator);

}  // namespace weft
