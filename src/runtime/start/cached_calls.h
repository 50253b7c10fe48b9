// CachedCalls holds the decisions about the last collectives of a thread. By this table a wrapper
// can pass a call to the MPI library, or find its plan, with very few instructions. The larger
// cache of plans would be too slow for short collectives.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "library/generated/call_ids.h"
#include "library/search.h"
#include "runtime/job/epoch.h"
#include "runtime/job/runtime.h"
#include "runtime/request/requests.h"
#include "runtime/start/plan.h"

namespace weft {

struct CachedCall {
  static constexpr std::size_t kMostWords = 5;

  std::uint64_t epoch;
  std::uint32_t called;  // code of the call, from called(); 0 for an unused entry
  MPI_Comm comm;
  std::array<std::uintptr_t, kMostWords> words;
  // The plan of the call; nullptr if the library carries the call out. In an entry for calls with
  // arrays of counts it is the plan of an earlier call, of which only the call classes are used.
  const Plan* plan;
  NativeWatch* watch;  // counts such calls if the library carries them out; may be nullptr

  // Returns whether the library carries the call out, nothing has to be done about it, and Weft has
  // no operation to progress meanwhile; then counts the call. profiled_by: as for Entry
  // (interpose/hooks.h).
  [[gnu::always_inline]] bool passes_through(const void* profiled_by) const {
    if (plan || !nothing_meanwhile()) return false;
    return !watch || (!(profiled_by && from_library(profiled_by)) && watch->counts_at_once());
  }
  // Returns whether this is a non-blocking call, or a blocking one whose size no rank knows, that
  // its call class leaves to the library, and counts it there. profiled_by: as for Entry
  // (interpose/hooks.h).
  bool passes_through_of_class(const void* profiled_by) const {
    if (!plan || !plan->variants) return false;
    const bool may_be_left = plan->variants->was_left || plan->variants->by_length();
    return may_be_left && nothing_meanwhile() && is_left_of_call_class(profiled_by);
  }

 private:
  [[gnu::always_inline]] bool nothing_meanwhile() const {
    return epoch == passthrough_epoch.load(std::memory_order_acquire) && nothing_under_way() &&
           deferring.load(std::memory_order_acquire) == 0;
  }
  // Returns whether a call about which engine auto learns can go to the MPI library at once: engine
  // auto currently leaves such calls to the MPI library, and nothing must be recorded.
  // If so, counts the call. Calls that are made inside other MPI calls belong to no class.
  bool is_left_of_call_class(const void* profiled_by) const;
  bool is_left(const CallClass& call_class, int variant) const;
};

struct CachedCalls {
  static constexpr std::size_t kMost = 32;
  static const std::array<CachedCall, kMost> kNone;

  template <class... Words>
  static std::size_t place_of(std::uint32_t called, MPI_Comm comm, Words... words) {
    const std::uint64_t first = called + (std::uintptr_t)comm;
    const std::uint64_t sum = (first + ... + (std::uintptr_t)words);
    static_assert(kMost == 32);
    return (sum * 0x9E3779B97F4A7C15u) >> 59;
  }
  // Stores, for the rest of this call, the entry that the wrapper has found; nullptr if there is
  // none. by: the address of the calling code if the application called PMPI_X; nullptr if it
  // called MPI_X.
  void enters(const CachedCall* known, const void* by) {
    found = known;
    profiled_by = by;
  }
  // Returns this thread's table for writing, after creating it if necessary.
  CachedCall* own();
  // Removes all entries with a plan that is about to be destroyed.
  void forget(const Plan& plan) {
    for (std::size_t i = 0; made && i < kMost; ++i)
      if (made[i].plan == &plan) made[i] = {};
  }
  void forget_all();

  const CachedCall* found;
  const void* profiled_by;
  const CachedCall* all = kNone.data();
  CachedCall* made;  // the same table as `all`; nullptr until own() has created it
};
extern constinit thread_local CachedCalls cached_calls __attribute__((tls_model("initial-exec")));

// Returns a code that tells which buffers are MPI_IN_PLACE, and whether both are equal.
inline std::uint32_t buffers_of(const void* send, const void* recv) {
  return (send == MPI_IN_PLACE) + 2u * (recv == MPI_IN_PLACE) + 4u * (send == recv);
}
// Returns a code for the call; never 0. If the call has no arrays of counts, the code includes
// buffers_of().
inline std::uint32_t called(CallId id, const void* send, const void* recv) {
  return static_cast<std::uint32_t>(id) + 1 + (buffers_of(send, recv) << 16);
}
inline std::uint32_t called(CallId id) {
  return static_cast<std::uint32_t>(id) + 1;
}

// Returns the cached entry for a call with these arguments; nullptr if there is none. words: the
// arguments besides buffers and communicator; none for calls with arrays of counts.
template <class... Words>
[[gnu::always_inline]] inline const CachedCall* cached_call(std::uint32_t called, MPI_Comm comm,
                                                            Words... words) {
  static_assert(sizeof...(words) <= CachedCall::kMostWords);
  const CachedCall& known = cached_calls.all[CachedCalls::place_of(called, comm, words...)];
  if (known.called != called || known.comm != comm) return nullptr;
  [[maybe_unused]] std::size_t i = 0;
  if (!((known.words[i++] == (std::uintptr_t)words) && ...)) return nullptr;
  return known.epoch == epoch() ? &known : nullptr;
}

// Caches the answer for later calls with these arguments. has_arrays: whether the call has arrays
// of counts, which are not compared. In this case the answer is cached only if it applies to all
// calls of this kind (CacheScope::all).
template <class... Words>
void remember_call(const Answer& answer, bool has_arrays, std::uint32_t called, MPI_Comm comm,
                   Words... words) {
  if (answer.alike < (has_arrays ? CacheScope::all : CacheScope::same_arguments)) return;
  cached_calls.own()[CachedCalls::place_of(called, comm, words...)] = {
      answer.epoch, called, comm, {(std::uintptr_t)words...}, answer.plan, answer.watch};
}

}  // namespace weft
