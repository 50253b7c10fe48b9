// The next way of a site, and the comparisons by which its ranks agree.
#include "interpose/sites.h"

#include <sched.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "coll/algorithm.h"
#include "interpose/caller.h"
#include "interpose/comparison.h"
#include "interpose/held.h"
#include "interpose/hooks.h"
#include "interpose/runtime.h"

namespace weft::interpose {
namespace {

thread_local WatchedFor watched;

}  // namespace

Site::Site(CallId id, const SiteKey& key, std::vector<Choice> among,
           const Learner::Settings& settings, TrialBudget& budget)
    : id(id),
      key(key),
      ways(std::move(among)),
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

std::optional<int> next_way(Runtime& runtime, CallId id, Communicator& communicator, Site& site,
                            const Made& made) {
  if (site.comparison && site.comparison->done()) {
    site.learner.agreed(site.comparison->result());
    site.comparison.reset();
  }
  const auto step = site.learner.next(made.at_ns, made.in_flight, communicator.sites->turn);
  if (!step) return std::nullopt;
  if (step->compare)
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
  if (communicator.rank == 0 && site.learner.is_learning()) site.look_at_caller();
  const Made made{site.learner.wants_time() ? now_ns() : 0, 0};
  while (true) {
    if (const auto way = next_way(runtime, id, communicator, site, made)) return *way;
    const WatchedCall watched_call(id);
    runtime.progress.drive_until([&] { return site.comparison->done(); }, [] { sched_yield(); });
  }
}

std::string words_of(const SiteKey& key) {
  std::string words = key.blocking ? "blocking " : "";
  words += kind_name(key.kind);
  if (key.kernel) words += ", predefined operator";
  if (key.size_class <= 0) return words;
  constexpr std::array<const char*, 4> kUnits = {" bytes", " KiB", " MiB", " GiB"};
  const int unit = std::min(key.size_class / 10, 3);
  return words + ", below " + std::to_string(std::uint64_t{1} << (key.size_class - 10 * unit)) +
         kUnits[static_cast<std::size_t>(unit)];
}

void Sites::forget_comparisons() {
  for (const auto& site : sites_) site->comparison.reset();
}

std::vector<SiteRecord> Sites::records(const Communicator& communicator) const {
  std::vector<SiteRecord> records;
  for (const auto& site : sites_) {
    SiteRecord& record = records.emplace_back();
    record.id = site->id;
    record.site_key = site->key;
    record.rank = communicator.rank;
    record.ranks = communicator.size;
    for (const Choice& way : site->ways) record.ways.push_back(way_words(way));
    record.found = site->learner.found();
    for (const std::uintptr_t caller : site->callers) record.places.push_back(caller_words(caller));
  }
  return records;
}

void DeclinedCall::begin() {
  declined_at = nullptr;
  began_ns_ = now_ns();
}

void DeclinedCall::end() const {
  site_->learner.took(now_ns() - began_ns_);
}

void watch_for(Site* site, Communicator* communicator) {
  watched = {site, communicator};
}

WatchedFor take_watched() {
  return std::exchange(watched, {});
}

}  // namespace weft::interpose
