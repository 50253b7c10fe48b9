// Plan: the decision how Weft carries out a call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/config.h"
#include "coll/algorithm.h"
#include "runtime/adaptive/call_classes.h"
#include "runtime/job/summary.h"
#include "runtime/node/shared_buffers.h"
#include "runtime/request/requests.h"

namespace weft {

// How the caller learns that a call is complete: by a request, by a persistent request, or because
// the call blocks.
enum class Use : std::uint8_t { request, persistent, blocking };

class Variants;

// The way in which a call's data are moved on this rank.
enum class Data : std::uint8_t {
  by_messages,  // messages, and perhaps shared memory as well
  in_memory,    // shared memory only, without messages
  at_once       // shared memory only; no data are in device memory or used in place by other ranks
};

// The threads that carry out a call.
enum class Carrier : std::uint8_t {
  callers,     // callers only, because the call runs a function that expects no other thread
  executor,    // the thread or worker of the engine, and callers
  inline_call  // the caller of a call with a request, perhaps as an InlineCall
};

// A schedule that is tried first, by which ranks use each other's buffers directly.
struct DirectPlan {
  std::shared_ptr<const Schedule> schedule;  // nullptr if there is no such schedule
  BuffersToShow shows;
  bool by_kernel = false;  // the kernel copies buffers that are not accessible

  explicit operator bool() const { return schedule != nullptr; }
};

// The decision about a call.
struct Plan : Recipe {
  std::optional<Reason> declined;  // reason to leave the call to the library; nullopt if Weft
                                   // carries it out
  Engine engine = Engine::native;
  Needs needs{};  // requirements of its algorithm; equal on all ranks
  Data data = Data::by_messages;
  Carrier carrier = Carrier::executor;
  DirectPlan direct;
  std::int64_t bytes = 0;              // size of the call on this rank
  std::shared_ptr<Variants> variants;  // set if engine auto learns: calls take different plans

  bool is_alone() const { return data != Data::by_messages; }
  bool leads() const { return needs == Needs::nodes_leaders; }

  // Sets the schedule, and the members that depend on it. `kernel` must be set before.
  void use(std::shared_ptr<const Schedule> other) {
    schedule = std::move(other);
    data = needs_no_messages(*schedule, kernel != nullptr) ? Data::in_memory : Data::by_messages;
  }
};

// The plans of a call for the variants of its call class. Each plan is made when its variant is
// first taken, by the thread that makes the call or, for a deferred call, by the thread that begins
// it. Meanwhile the first thread may read its cached plans.
class Variants {
 public:
  Variants(CallClass* of, std::size_t variants) : call_class(of), plans_(variants) {}
  ~Variants() {
    for (const auto& plan : plans_) delete plan.load(std::memory_order_relaxed);
  }
  Variants(const Variants&) = delete;
  Variants& operator=(const Variants&) = delete;

  // Returns the plan of a variant; nullptr if the variant was not taken yet.
  const Plan* plan(int variant) const {
    return plans_[static_cast<std::size_t>(variant)].load(std::memory_order_acquire);
  }
  // Stores a plan. Is called once for each variant, by one thread at a time.
  const Plan& keep(int variant, std::unique_ptr<const Plan> made) {
    const Plan* const plan = made.release();
    plans_[static_cast<std::size_t>(variant)].store(plan, std::memory_order_release);
    return *plan;
  }
  int count() const { return static_cast<int>(plans_.size()); }

  CallClass* const call_class;
  bool was_left = false;  // the library carried out the last call of the class

 private:
  std::vector<std::atomic<const Plan*>> plans_;
};

// Returns the reason why the library carries out the current call of a class, in more detail than
// `declined`, the reason in its variant's plan.
inline Reason exact_reason(Reason declined, const CallClass& call_class) {
  if (declined != Reason::learnt) return declined;
  const Learner& learner = call_class.learner;
  if (learner.was_on_trial()) return Reason::tried;
  return learner.has_result() ? Reason::learnt : Reason::rule;
}

// Tells to which later calls on a communicator a cached answer applies, until the epoch ends: to
// none, to calls with equal arguments, or to all.
enum class CacheScope : std::uint8_t { none, same_arguments, all };

// The answer to a call: its plan, and the later calls to which the plan applies.
struct Answer {
  const Plan* plan = nullptr;  // valid until this thread's next call; nullptr if the library
                               // carries the call out
  std::uint64_t epoch = 0;
  CacheScope alike = CacheScope::none;
  Reason reason{};  // reason why there is no plan
};

}  // namespace weft
