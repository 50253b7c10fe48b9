// SitesInUse: the sites of one communicator. There is room for so many; what is no longer called
// makes room for others. All ranks must have the same sites in the same call. So what is forgotten
// rests on the order in which the application makes its calls, and on nothing else: what a learner
// knows, a rank that holds calls knows later than others.
// Why apart from MPI: the search over all orders of events runs this very code.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace weft {

// What is counted of each site.
struct CallsMade {
  std::uint64_t all = 0, before_last_look = 0;
  bool since_last_look() const { return all > before_last_look; }
};

// `Site` has `key` and `CallsMade made`.
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

  // Where all that there can be are few enough: none is forgotten. Before the first one.
  void have_room_for_all() { limits_.most = UINT32_MAX; }

  // Of the call that the application makes now; nullptr: there is no room. By whoever makes the
  // calls, as all that follows.
  template <class Key, class Make>  // makes a std::unique_ptr<Site>
  Site* find_or_make(const Key& key, Make make) {
    for (const auto& site : sites_)
      if (site->key == key) return site.get();
    if (sites_.size() < limits_.most) return sites_.emplace_back(make()).get();
    was_full_ = true;
    return nullptr;
  }

  // The application makes a call of this site, or of one for which there is no room. True: some
  // sites have been forgotten, and what others remember of any site is to be asked for anew.
  bool count_call(CallsMade& made) {
    ++made.all;
    return --calls_to_look_ == 0 && look();
  }

  // Those that have been forgotten, but that calls made before may still use: until
  // `is_done(site)`.
  template <class IsDone>
  void let_go_forgotten(IsDone is_done) {
    std::erase_if(forgotten_, [&](const auto& site) { return is_done(*site); });
  }

  // The same on all ranks, as the calls are.
  bool some_were_forgotten() const { return some_were_forgotten_; }

  template <class Do>
  void for_each(Do what) const {  // also of those that have been forgotten
    for (const auto& site : sites_) what(*site);
    for (const auto& site : forgotten_) what(*site);
  }

 private:
  // What has not been called since the last look is no longer in use. The least used goes first.
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
  // Since some were forgotten, a site has been asked for that had no room. A look does not clear
  // it: some ranks remember plans for longer than others, and would not ask again.
  bool was_full_ = false;
  bool some_were_forgotten_ = false;
};

}  // namespace weft
