// RecentPlanCache holds the plans of a thread's last calls, since programs repeat their calls. Its
// size in bytes is bounded. Plans that it drops are removed from CachedCalls, too.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/job/epoch.h"
#include "runtime/start/cached_calls.h"
#include "runtime/start/plan.h"
#include "transport/mpi/call.h"

namespace weft {

class RecentPlanCache {
 public:
  // Returns this thread's cache, after creating it if necessary.
  static RecentPlanCache& own() { return of_this_thread_ ? *of_this_thread_ : made(); }
  static const Plan* find_own(const Call& call, Use use) {
    return of_this_thread_ ? of_this_thread_->find(call, use) : nullptr;
  }

  // Adds a plan, and returns the stored copy. made_at: the epoch in which the plan was begun. If
  // the call's arrays are too long to compare, the plan is stored but never found again.
  const Plan* add(const Call& call, Use use, std::uint64_t made_at, const Plan& plan);
  // Stores a plan for the current call only, and returns the stored copy. The next such plan
  // overwrites it.
  const Plan* keep(const Plan& plan) { return &(unremembered_ = plan); }

 private:
  friend struct AtThreadEnd;

  struct Entry {
    std::uint64_t epoch = 0;  // epoch in which the plan was made; 0 for an unused entry
    Use use{};
    std::uint32_t buffers = 0;
    int sends = 0, recvs = 0;  // lengths of the call's arrays
    Call call{};               // the call, with copies of its arrays
    Plan plan{};
    KeptArrays arrays;

    // Returns whether the arrays of another call are equal to this one's. All other arguments must
    // be equal, and therefore also the lengths.
    bool has_same_counts(const Call& other) const;
    bool keep_arrays();  // copies the call's arrays; returns false if they are too long
    std::size_t bytes() const;
  };
  // The entries of the cache that may contain the plan of a given call.
  struct Set {
    std::array<Entry, 4> entries{};
    unsigned next = 0;

    Entry& to_be_replaced();
  };

  static RecentPlanCache& made();
  const Plan* find(const Call& call, Use use);
  void drop_if_too_many(const Entry& last);
  Set& set_of(const Call& call, Use use);

  // Compares the arguments on which a plan depends, except for arrays. It compares member by
  // member, because it runs in every call.
  static bool same_arguments(const Call& a, const Call& b) {
    return a.comm == b.comm && a.recvtype == b.recvtype && a.op == b.op && a.form == b.form &&
           a.sendtype == b.sendtype && a.root == b.root;
  }
  static std::uint32_t buffers_of(const Call& call) {
    return weft::buffers_of(call.sendbuf, call.recvbuf);
  }
  static bool same_types(const MPI_Datatype* a, const MPI_Datatype* b, int count) {
    return !a == !b && (!a || std::equal(a, a + count, b));
  }

  // The cache is on the heap, because libraries have little thread-local memory. If the program
  // calls MPI after the thread's objects have been destroyed, a new cache is made.
  static constinit thread_local RecentPlanCache* of_this_thread_
      __attribute__((tls_model("initial-exec")));

  std::array<Set, 16> sets_{};
  // The entry found last, which is most likely also the next call's.
  Entry* found_last_ = sets_[0].entries.data();
  Plan unremembered_;
};

inline const Plan* RecentPlanCache::find(const Call& call, Use use) {
  const std::uint64_t now = epoch();
  const std::uint32_t buffers = buffers_of(call);
  const auto fits = [&](const Entry& entry) {
    return entry.epoch == now && entry.use == use && entry.buffers == buffers &&
           same_arguments(entry.call, call) && entry.has_same_counts(call);
  };
  if (fits(*found_last_)) return &found_last_->plan;
  for (Entry& entry : set_of(call, use).entries)
    if (fits(entry)) return &(found_last_ = &entry)->plan;
  return nullptr;
}

inline bool RecentPlanCache::Entry::has_same_counts(const Call& other) const {
  if (!call.has_arrays()) [[likely]]
    return call.recvcounts.is_like(other.recvcounts, 0) &&
           call.sendcounts.is_like(other.sendcounts, 0);
  return call.recvcounts.is_like(other.recvcounts, recvs) &&
         call.sendcounts.is_like(other.sendcounts, sends) &&
         call.recvdispls.is_like(other.recvdispls, recvs) &&
         call.senddispls.is_like(other.senddispls, sends) &&
         same_types(call.recvtypes, other.recvtypes, recvs) &&
         same_types(call.sendtypes, other.sendtypes, sends);
}

inline RecentPlanCache::Set& RecentPlanCache::set_of(const Call& call, Use use) {
  const auto count = [](const Numbers& numbers) {
    return numbers.is_array() ? 0 : numbers.one<std::uint64_t>();
  };
  const std::uint64_t sum =
      static_cast<std::uint64_t>(call.form) * 4 + static_cast<std::uint64_t>(use) +
      count(call.sendcounts) + count(call.recvcounts) + static_cast<std::uint64_t>(call.root) +
      (std::uintptr_t)call.comm + (std::uintptr_t)call.op + (std::uintptr_t)call.recvtype;
  return sets_[(sum * 0x9E3779B97F4A7C15u) >> 60];
}

}  // namespace weft
