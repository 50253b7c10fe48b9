// Plan says how a collective call is carried out.
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
#include "runtime/adaptive/calls_by_length.h"
#include "runtime/job/summary.h"
#include "runtime/node/shared_buffers.h"
#include "runtime/request/requests.h"
#include "runtime/trial/native_watch.h"

namespace weft {

// Says how the application learns that the call is complete: by a request, by a persistent request,
// or by the return of a blocking call.
enum class Use : std::uint8_t { request, persistent, blocking };

class Variants;

// Says how the call's data are moved on this rank.
enum class Data : std::uint8_t {
  by_messages,  // messages, perhaps with shared memory
  in_memory,    // shared memory, without messages
  // Shared memory, without data in GPU memory, and without buffers that other ranks use in place.
  at_once
};

// Says which threads carry out a call.
enum class Carrier : std::uint8_t {
  callers,     // application threads only: the call runs a function that no other thread may run
  executor,    // the engine's thread, and application threads
  inline_call  // only the calling thread, if possible as an InlineCall
};

// A schedule that uses the other ranks' buffers in place. It is tried first.
struct DirectPlan {
  std::shared_ptr<const Schedule> schedule;  // nullptr if there is no such schedule
  BuffersToShow shows;
  bool by_kernel = false;  // whether the kernel may copy buffers that are not accessible

  explicit operator bool() const { return schedule != nullptr; }
};

// Says how a collective call is carried out: by the MPI library, or by Weft with this engine,
// schedule and memory.
struct Plan : Recipe {
  // The reason why the MPI library carries the call out; nullopt if Weft does.
  std::optional<Reason> declined;
  Engine engine = Engine::native;
  Needs needs{};  // what the algorithm requires; equal on all ranks
  Data data = Data::by_messages;
  Carrier carrier = Carrier::executor;
  NativeWatch* watch = nullptr;  // counts such calls, which may be compared with the library's
                                 // again; nullptr if they are not
  DirectPlan direct;
  std::int64_t bytes = 0;  // size of the call on this rank
  // Length class of this rank's part of the call, if no rank knows the size
  // (Variants::by_length()).
  int length = 0;
  // The plans between which engine auto chooses for each call, if it learns about such calls;
  // otherwise nullptr.
  std::shared_ptr<Variants> variants;

  bool is_alone() const { return data != Data::by_messages; }
  bool leads() const { return needs == Needs::nodes_leaders; }

  // Sets the schedule, and the members that depend on it. `kernel` must be set before.
  void use(std::shared_ptr<const Schedule> other) {
    schedule = std::move(other);
    data = needs_no_messages(*schedule, kernel != nullptr) ? Data::in_memory : Data::by_messages;
  }
};

// Holds one plan for each variant (engine and algorithm) of a class of similar calls. A plan is
// made when its variant is first taken. The thread that makes it is the one that makes the call or,
// for a deferred call, the one that starts it. Another thread may read the plans at the same time.
class Variants {
 public:
  // Exactly one of the call class and the calls by length is given.
  Variants(CallClass* call_class, CallsByLength* by_length)
      : call_class_(call_class),
        by_length_(by_length),
        plans_(this->call_class().variants.size()) {}
  ~Variants() {
    for (const auto& plan : plans_) delete plan.load(std::memory_order_relaxed);
  }
  Variants(const Variants&) = delete;
  Variants& operator=(const Variants&) = delete;

  // Returns the plan of the variant with this index; nullptr if no call has taken the variant yet.
  const Plan* plan(int variant) const {
    return plans_[static_cast<std::size_t>(variant)].load(std::memory_order_acquire);
  }
  // Stores the plan of the variant with this index, and returns it. It must be called only once for
  // each variant, and by one thread at a time.
  const Plan& keep(int variant, std::unique_ptr<const Plan> made) {
    const Plan* const plan = made.release();
    plans_[static_cast<std::size_t>(variant)].store(plan, std::memory_order_release);
    return *plan;
  }
  int count() const { return static_cast<int>(plans_.size()); }

  // Returns the class of the current call. If there are several, count_call() must have been
  // called.
  CallClass& call_class() const { return by_length_ ? by_length_->in_force() : *call_class_; }
  // Returns all classes to which the call may belong, if no rank knows its size; nullptr if there
  // is one class. They have the same variants.
  CallsByLength* by_length() const { return by_length_; }

  bool was_left = false;  // whether the MPI library carried out the last call

 private:
  CallClass* const call_class_;
  CallsByLength* const by_length_;
  std::vector<std::atomic<const Plan*>> plans_;
};

// Counts the application's current call, and returns its class of similar calls.
inline CallClass& class_of_call(const Plan& plan) {
  if (CallsByLength* const by_length = plan.variants->by_length())
    by_length->count_call(plan.length);
  return plan.variants->call_class();
}

// Returns why the MPI library carries out the current call of this class of similar calls.
// declined: the less exact reason in the call's plan.
inline Reason exact_reason(Reason declined, const CallClass& call_class) {
  if (declined != Reason::learnt) return declined;
  const Learner& learner = call_class.learner;
  if (learner.was_on_trial()) return Reason::tried;
  return learner.has_result() ? Reason::learnt : Reason::rule;
}

// Says to which later calls on the same communicator a cached answer applies: to none, to those
// with the same arguments, or to all. It applies until the epoch ends. If it applies to all and has
// a plan, only the call classes in this plan apply, and not how it moves the data.
enum class CacheScope : std::uint8_t { none, same_arguments, all };

// The answer to a collective call: its plan, and to which later calls the plan applies.
struct Answer {
  // Valid until this thread's next call; nullptr if the MPI library carries the call out.
  const Plan* plan = nullptr;
  std::uint64_t epoch = 0;
  CacheScope alike = CacheScope::none;
  Reason reason{};               // reason why there is no plan
  NativeWatch* watch = nullptr;  // counts such calls, whoever carries them out; may be nullptr
};

}  // namespace weft
