// Plan: what Weft does with a call, whoever carries it out.
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

// Says how the caller learns of the end.
enum class Use : std::uint8_t { request, persistent, blocking };

class Variants;

// Says how the data of a call go on this rank.
enum class Data : std::uint8_t {
  by_messages,  // and perhaps by memory as well
  in_memory,    // no message: all happens in memory
  at_once       // nor is there anything else to look at
};

// Says who carries a call out.
enum class Carrier : std::uint8_t {
  callers,     // callers alone: it runs a function that expects no other thread
  executor,    // that of its engine, and callers
  inline_call  // the caller of a request, perhaps as an InlineCall
};

// A schedule that is tried first, by which ranks use each other's buffers.
struct DirectPlan {
  std::shared_ptr<const Schedule> schedule;  // nullptr: none
  BuffersToShow shows;
  bool by_kernel = false;  // what cannot be seen, the kernel copies

  explicit operator bool() const { return schedule != nullptr; }
};

// The decision about a call.
struct Plan : Recipe {
  std::optional<Reason> declined;  // nothing
  Engine engine = Engine::native;
  Needs needs{};  // of its algorithm; the same on all ranks
  Data data = Data::by_messages;
  Carrier carrier = Carrier::executor;
  DirectPlan direct;
  std::int64_t bytes = 0;              // of this rank
  std::shared_ptr<Variants> variants;  // engine auto learns: what is done differs by call

  bool is_alone() const { return data != Data::by_messages; }
  bool leads() const { return needs == Needs::nodes_leaders; }

  // Sets the schedule, and what follows from it. `kernel` must be known.
  void use(std::shared_ptr<const Schedule> other) {
    schedule = std::move(other);
    data = stands_alone(*schedule, kernel != nullptr) ? Data::in_memory : Data::by_messages;
  }
};

// The plans of a call for the variants of its call class. Each is made when its variant is first
// taken, by the thread that makes the call or, for a deferred call, by the thread that releases it;
// meanwhile the first thread may look at its cached plans.
class Variants {
 public:
  Variants(CallClass* of, std::size_t variants) : call_class(of), plans_(variants) {}
  ~Variants() {
    for (const auto& plan : plans_) delete plan.load(std::memory_order_relaxed);
  }
  Variants(const Variants&) = delete;
  Variants& operator=(const Variants&) = delete;

  // Returns nullptr if the variant was not taken yet.
  const Plan* plan(int variant) const {
    return plans_[static_cast<std::size_t>(variant)].load(std::memory_order_acquire);
  }
  // Stores a plan; once for each variant, by one thread at a time.
  const Plan& keep(int variant, std::unique_ptr<const Plan> made) {
    const Plan* const plan = made.release();
    plans_[static_cast<std::size_t>(variant)].store(plan, std::memory_order_release);
    return *plan;
  }
  int count() const { return static_cast<int>(plans_.size()); }

  CallClass* const call_class;
  bool was_left = false;  // the last call was the library's

 private:
  std::vector<std::atomic<const Plan*>> plans_;
};

// Returns why the last call of a call class was the library's. declined: as its variant says.
inline Reason exact_reason(Reason declined, const CallClass& call_class) {
  if (declined != Reason::learnt) return declined;
  const Learner& learner = call_class.learner;
  if (learner.was_on_trial()) return Reason::tried;
  return learner.has_result() ? Reason::learnt : Reason::rule;
}

// Says for which calls of an epoch on one communicator an answer holds.
enum class Alike : std::uint8_t { none, same_arguments, all };

// The answer to a call: its plan, and for which later calls that holds.
struct Answer {
  const Plan* plan = nullptr;  // good until this thread's next call; nullptr: the library's
  std::uint64_t epoch = 0;
  Alike alike = Alike::none;
  Reason reason{};  // why there is no plan
};

}  // namespace weft
