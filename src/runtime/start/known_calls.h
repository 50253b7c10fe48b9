// KnownCalls: of the collectives that a thread made last, what is done with them, so that a wrapper
// need not ask again, and passes on at once what is the library's. Why apart from the plans: a
// short collective takes so few instructions that the look for its plan would be felt.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "library/generated/call_ids.h"
#include "runtime/job/epoch.h"
#include "runtime/runtime.h"
#include "runtime/start/held.h"
#include "runtime/start/plans.h"

namespace weft {

// For which calls of an epoch on one communicator an answer holds.
enum class Alike : std::uint8_t { none, same_arguments, all };

struct KnownCall {
  static constexpr std::size_t kMostWords = 5;

  std::uint64_t epoch;
  std::uint32_t called;  // 0: there is none
  MPI_Comm comm;
  std::array<std::uintptr_t, kMostWords> words;
  const Plan* plan;  // nullptr: the library's

  // Weft has nothing to do with it, nor anything of its own to do meanwhile.
  [[gnu::always_inline]] bool goes_straight() const { return !plan && nothing_meanwhile(); }
  // The same of a non-blocking call that its site leaves to the library, which is counted there
  // then. profiled_by: as Entry has it (hooks.h).
  bool goes_straight_at_site(const void* profiled_by) const {
    return plan && plan->ways && plan->ways->was_left && nothing_meanwhile() &&
           is_left_at_site(*plan, profiled_by);
  }

 private:
  [[gnu::always_inline]] bool nothing_meanwhile() const {
    return epoch == straight_epoch.load(std::memory_order_acquire) && nothing_under_way() &&
           holding.load(std::memory_order_acquire) == 0;
  }
};

struct KnownCalls {
  static constexpr std::size_t kMost = 32;
  static const std::array<KnownCall, kMost> kNone;

  // plan_for() has come to this answer; nullptr: the call is the library's.
  void answered(Alike alike, std::uint64_t epoch, const Plan* plan) {
    last_alike = alike;
    last_epoch = epoch;
    last_plan = plan;
  }
  template <class... Words>
  static std::size_t place_of(std::uint32_t called, MPI_Comm comm, Words... words) {
    const std::uint64_t first = called + (std::uintptr_t)comm;
    const std::uint64_t sum = (first + ... + (std::uintptr_t)words);
    static_assert(kMost == 32);
    return (sum * 0x9E3779B97F4A7C15u) >> 59;
  }
  // The wrapper hands over what it has found; nullptr: nothing. profiled_by: as Entry has it.
  void enters(const KnownCall* known, const void* by) {
    found = known;
    profiled_by = by;
  }
  // To be written. Made with the first.
  KnownCall* own();
  // The plan goes.
  void forget(const Plan& plan) {
    for (std::size_t i = 0; made && i < kMost; ++i)
      if (made[i].plan == &plan) made[i] = {};
  }
  void forget_all();

  const KnownCall* found;
  const void* profiled_by;
  Alike last_alike;
  std::uint64_t last_epoch;
  const Plan* last_plan;
  const KnownCall* all = kNone.data();
  KnownCall* made;  // the same; nullptr: none is known yet
};
extern constinit thread_local KnownCalls known_calls __attribute__((tls_model("initial-exec")));

// Of a call's buffers: whether they are none or one.
inline std::uint32_t buffers_of(const void* send, const void* recv) {
  return (send == MPI_IN_PLACE) + 2u * (recv == MPI_IN_PLACE) + 4u * (send == recv);
}
// Which call, and what buffers_of() says of one without arrays. Never 0.
inline std::uint32_t called(CallId id, const void* send, const void* recv) {
  return static_cast<std::uint32_t>(id) + 1 + (buffers_of(send, recv) << 16);
}
inline std::uint32_t called(CallId id) {
  return static_cast<std::uint32_t>(id) + 1;
}

// words: the arguments beside buffers and communicator; none of a call with arrays. nullptr: it is
// not known.
template <class... Words>
[[gnu::always_inline]] inline const KnownCall* known_call(std::uint32_t called, MPI_Comm comm,
                                                          Words... words) {
  static_assert(sizeof...(words) <= KnownCall::kMostWords);
  const KnownCall& known = known_calls.all[KnownCalls::place_of(called, comm, words...)];
  if (known.called != called || known.comm != comm) return nullptr;
  [[maybe_unused]] std::size_t i = 0;
  if (!((known.words[i++] == (std::uintptr_t)words) && ...)) return nullptr;
  return known.epoch == epoch() ? &known : nullptr;
}

// The last answer was for this call. has_arrays: it is known again only by an answer for all.
template <class... Words>
void remember_call(bool has_arrays, std::uint32_t called, MPI_Comm comm, Words... words) {
  const Alike alike = std::exchange(known_calls.last_alike, Alike::none);
  if (alike < (has_arrays ? Alike::all : Alike::same_arguments)) return;
  known_calls.own()[KnownCalls::place_of(called, comm, words...)] = {
      known_calls.last_epoch, called, comm, {(std::uintptr_t)words...}, known_calls.last_plan};
}

}  // namespace weft
