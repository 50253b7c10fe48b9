// Finds the next way of a site, by comparisons with which its ranks agree.
#include "runtime/adaptive/sites.h"

#include <sched.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "coll/algorithm.h"
#include "runtime/adaptive/caller.h"
#include "runtime/adaptive/comparison.h"
#include "runtime/adaptive/learnt.h"
#include "runtime/job/epoch.h"
#include "runtime/request/in_hand.h"
#include "runtime/request/watchdog.h"

namespace weft {

// Part of what is kept of each communicator: docs/inside/scale.md.
static_assert(sizeof(Sites) <= 152);
Site::Site(Sites& among, CallId id, const SiteKey& key, std::vector<Choice> candidates,
           const Learner::Settings& settings, TrialBudget& budget)
    : among(among),
      id(id),
      key(key),
      ways(std::move(candidates)),
      learner(ways.size(), native_among(ways), settings, budget) {}

Site::~Site() = default;

void Site::look_at_caller() {
  constexpr int kMostLooks = 16;
  constexpr std::size_t kMostCallers = 4;
  if (looks_at_callers_ == kMostLooks || callers.size() == kMostCallers) return;
  ++looks_at_callers_;
  const std::uintptr_t caller = application_caller();
  if (caller != 0 && std::find(callers.begin(), callers.end(), caller) == callers.end())
    callers.push_back(caller);
}

namespace {

// All ranks find the same, whichever comes first.
void look_at_comparison(Site& site) {
  if (const auto greatest = site.in_memory->look())
    site.learner.agreed(*greatest);
  else
    site.learner.agreed_to_look_later();
}

}  // namespace

std::optional<int> next_way(Runtime& runtime, CallId id, Communicator& communicator, Site& site,
                            const Made& made) {
  if (site.comparison && site.comparison->done()) {
    site.learner.agreed(site.comparison->result());
    site.comparison.reset();
  }
  TrialTurn& turn = site.among.turn;
  auto step = site.learner.next(made.at_ns, made.in_flight, turn);
  if (!step && site.in_memory) {
    look_at_comparison(site);
    step = site.learner.next(made.at_ns, made.in_flight, turn);
  }
  if (!step) return std::nullopt;
  if (step->compare && worker_among(site.ways) >= 0) {
    communicator.want_worker(runtime);
    if (!communicator.worker) site.learner.say_unable();
  }
  if (step->compare && site.in_memory)
    site.in_memory->tell(site.learner.words());
  else if (step->compare)
    site.comparison = begin_comparison(runtime, id, communicator, site.learner.words());
  return step->way;
}

std::optional<int> next_way_now(Runtime& runtime, CallId id, Communicator& communicator,
                                Site& site) {
  if (site.comparison && !site.comparison->done()) runtime.progress.poll();
  if (communicator.rank == 0 && site.learner.is_learning()) site.look_at_caller();
  return next_way(
      runtime, id, communicator, site,
      {site.learner.wants_time() ? now_ns() : 0, site.in_flight.load(std::memory_order_relaxed)});
}

int next_way_in_call(Runtime& runtime, CallId id, Communicator& communicator, Site& site) {
  if (const auto way = next_way_at_once(runtime, communicator, site)) return *way;
  if (communicator.rank == 0 && site.learner.is_learning()) site.look_at_caller();
  const Made made{site.learner.wants_time() ? now_ns() : 0, 0};
  while (true) {
    if (const auto way = next_way(runtime, id, communicator, site, made)) return *way;
    const WatchedCall watched_call(id);
    runtime.progress.drive_until([&] { return site.comparison->done(); }, [] { sched_yield(); });
  }
}

// Only non-blocking calls whose size all ranks know, and with a predefined operator or none, come
// here; so kind and class of sizes identify them.
std::optional<SharedWords> Sites::memory_for(const SiteKey& key, SegmentRoom& room) {
  constexpr std::int64_t kSizeClasses = 32;  // up to 2 GiB
  constexpr std::int64_t kBytes = ComparisonsInMemory::kWords * sizeof(std::int64_t);
  constexpr std::int64_t kBytesOfAll = to_pages(kKinds * kSizeClasses * kBytes);
  // The first answer is final: ranks may ask again at different calls, with different room by then.
  has_no_memory_ = has_no_memory_ || (!memory_ && !room.fits(kBytesOfAll));
  if (has_no_memory_) return std::nullopt;
  if (!memory_) {
    memory_ = room.take(kBytesOfAll);
    in_use_.have_room_for_all();
  }
  const std::int64_t number = static_cast<int>(key.kind) * kSizeClasses + key.size_class;
  return SharedWords(memory_.get() + number * kBytes);
}

Site& Sites::without_room(bool blocking) {
  auto& site = without_room_[blocking];
  if (site) return *site;
  SiteKey key;
  key.blocking = blocking;
  Learner::Settings settings;
  settings.tries = false;
  site = std::make_unique<Site>(*this, CallId{}, key, std::vector<Choice>(1), settings,
                                Runtime::active()->trial_budget);
  return *site;
}

void Sites::forget_comparisons() {
  in_use_.for_each([](Site& site) { site.comparison.reset(); });
}

namespace {

// Returns a record for each position of the site's cycle.
std::vector<SiteRecord> records_of(const Site& site, const Communicator& communicator) {
  SiteRecord record;
  record.id = site.id;
  record.site_key = site.key;
  record.rank = communicator.rank;
  record.ranks = communicator.size;
  for (const Choice& way : site.ways) record.ways.push_back(way_words(way));
  for (const std::uintptr_t caller : site.callers) record.places.push_back(caller_words(caller));
  record.cycle = site.learner.cycle();
  std::vector<SiteRecord> records;
  for (; record.position < record.cycle; ++record.position) {
    record.found = site.learner.found(record.position);
    records.push_back(record);
  }
  return records;
}

}  // namespace

std::vector<SiteRecord> Sites::records(const Communicator& communicator) const {
  std::vector<SiteRecord> records;
  in_use_.for_each([&](const Site& site) {
    for (SiteRecord& record : records_of(site, communicator)) records.push_back(std::move(record));
  });
  return records;
}

// Plans that name a forgotten site are no longer found; calls that name it are in flight.
void Sites::forgotten(Runtime& runtime, const Communicator& communicator) {
  begin_epoch();
  InHand::own().hand_over();  // what is in hand does not say so at its site
  in_use_.let_go_forgotten([&](const Site& site) {
    if (site.in_flight.load(std::memory_order_acquire) > 0) return false;
    for (SiteRecord& record : records_of(site, communicator))
      Learnt::own().note(communicator, std::move(record));
    return true;
  });
}

void forget_comparisons(Communicator& communicator) {
  if (Sites* const sites = communicator.attributes.find<Sites>()) sites->forget_comparisons();
}

}  // namespace weft
