// SitesInUse: the sites of one communicator, in bounded number: those that are no longer called
// make room for others. All ranks must have the same sites in the same call, so that forgetting
// depends only on the order of the application's calls; a rank that defers calls learns results
// later than others. It is separate from MPI so that the search over all orders of events can run
// this code.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace weft {

// Counts the calls of a site.
struct CallsMade {
  std::uint64_t all = 0, before_last_look = 0;
  bool since_last_look() const { return all > before_last_look; }
};

// `Site` must have the members `key` and `CallsMade made`.
template <class Site>
class SitesInUse {
 public:
  struct Limits {
    std::uint32_t most = 64;
    std::uint32_t calls_between_looks = 8192;  // of all sites
    std::uint32_t most_forgotten = 16;         // at one look
  };

  SitesInUse() = default;
  explicit SitesInUse(const Limits& limits) : limits_(limits) {}

  // Disables forgetting, for communicators that can have few sites only. Must precede the first
  // site.
  void have_room_for_all() { limits_.most = UINT32_MAX; }

  // Returns the site of the application's current call, or nullptr if there is no room. This and
  // the following functions may only be called by the thread that makes the calls.
  template <class Key, class Make>  // makes a std::unique_ptr<Site>
  Site* find_or_make(const Key& key, Make make) {
    for (const auto& site : sites_)
      if (site->key == key) return site.get();
    if (sites_.size() < limits_.most) return sites_.emplace_back(make()).get();
    was_full_ = true;
    return nullptr;
  }

  // Counts a call of this site, or of one for which there is no room. Returns true if some sites
  // have been forgotten, so that every cached reference to a site must be looked up again.
  bool count_call(CallsMade& made) {
    ++made.all;
    return --calls_to_look_ == 0 && look();
  }

  // Frees forgotten sites once `is_done(site)` says that no earlier call uses them any more.
  template <class IsDone>
  void let_go_forgotten(IsDone is_done) {
    std::erase_if(forgotten_, [&](const auto& site) { return is_done(*site); });
  }

  // Returns whether any site was forgotten; the answer is the same on all ranks.
  bool some_were_forgotten() const { return some_were_forgotten_; }

  template <class Do>
  void for_each(Do what) const {  // also of those that have been forgotten
    for (const auto& site : sites_) what(*site);
    for (const auto& site : forgotten_) what(*site);
  }

 private:
  // Forgets the least used of the sites that have not been called since the last look.
  bool look() {
    calls_to_look_ = limits_.calls_between_looks;
    std::vector<const Site*> unused;
    for (const auto& site : sites_) {
      if (!site->made.since_last_look()) unused.push_back(site.get());
      site->made.before_last_look = site->made.all;
    }
    if (!was_full_ || unused.empty()) return false;
    was_full_ = false;
    std::stable_sort(unused.begin(), unused.end(), [](const Site* one, const Site* other) {
      return one->made.all < other->made.all;
    });
    unused.resize(std::min<std::size_t>(unused.size(), limits_.most_forgotten));
    for (const Site* site : unused) forget(site);
    return some_were_forgotten_ = true;
  }

  void forget(const Site* site) {
    const auto at = std::find_if(sites_.begin(), sites_.end(),
                                 [&](const auto& one) { return one.get() == site; });
    forgotten_.push_back(std::move(*at));
    sites_.erase(at);
  }

  Limits limits_{};
  std::vector<std::unique_ptr<Site>> sites_, forgotten_;
  std::uint32_t calls_to_look_ = limits_.calls_between_looks;
  // Set when a site did not fit since the last forgetting. A look does not clear it: some ranks
  // cache plans for longer than others, and would not ask again.
  bool was_full_ = false;
  bool some_were_forgotten_ = false;
};

}  // namespace weft
