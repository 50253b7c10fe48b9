// Plans: the decisions about calls. A plan is made once for calls that look alike, and cached by
// each thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/node/shared_buffers.h"
#include "runtime/runtime.h"

namespace weft {

// Says how the caller learns of the end.
enum class Use : std::uint8_t { request, persistent, blocking };

struct Site;
class Ways;

// The decision about a call.
struct Plan {
  Communicator* communicator = nullptr;
  std::optional<Reason> declined;  // nothing
  Engine engine = Engine::native;
  std::shared_ptr<const Schedule> schedule;
  std::shared_ptr<const Schedule> direct;  // to be tried first; nullptr: none
  BuffersToShow shows;                     // in that case
  Kernel kernel = nullptr;                 // of reductions; nullptr: MPI_Reduce_local
  bool by_kernel = false;                  // of direct: what cannot be seen, the kernel copies
  bool in_memory = false;                  // of a node, on this rank or on others
  bool leads = false;                      // collectives between leaders, on this rank or on others
  bool by_callers = false;                 // it runs a function that expects no other thread
  bool alone = false;                      // no message: all happens in memory
  bool at_once = false;                    // nor is there anything else to look at
  bool in_hand = false;                    // a request's: InHand may have it
  std::int64_t bytes = 0;                  // of this rank
  std::shared_ptr<Ways> ways;              // engine auto learns: what is done differs by call

  // Sets the schedule, and what follows from it. `kernel` must be known.
  void use(std::shared_ptr<const Schedule> other) {
    schedule = std::move(other);
    alone = stands_alone(*schedule, kernel != nullptr);
  }
};

// The plans of a call for the ways of its site. Each is made when its way is first taken, by the
// thread that makes the call or, for a deferred call, by the thread that releases it; meanwhile the
// first thread may look at its cached plans.
class Ways {
 public:
  Ways(Site* of, std::size_t ways) : site(of), plans_(ways) {}
  ~Ways() {
    for (const auto& plan : plans_) delete plan.load(std::memory_order_relaxed);
  }
  Ways(const Ways&) = delete;
  Ways& operator=(const Ways&) = delete;

  // Returns nullptr if the way was not taken yet.
  const Plan* plan(int way) const {
    return plans_[static_cast<std::size_t>(way)].load(std::memory_order_acquire);
  }
  // Stores a plan; once for each way, by one thread at a time.
  const Plan& keep(int way, std::unique_ptr<const Plan> made) {
    const Plan* const plan = made.release();
    plans_[static_cast<std::size_t>(way)].store(plan, std::memory_order_release);
    return *plan;
  }
  int count() const { return static_cast<int>(plans_.size()); }

  Site* const site;
  bool was_left = false;  // the last call was the library's

 private:
  std::vector<std::atomic<const Plan*>> plans_;
};

// Returns whether the thread is to continue an operation that its start has advanced as far as
// possible.
bool worth_the_thread(Engine engine, const Schedule& schedule);

// Returns the plan, valid until this thread's next call; nullptr if Weft leaves the call to the
// library.
const Plan* plan_for(Runtime& runtime, const Call& call, Use use);
// Returns why this thread's last such call was left to the library.
Reason why_declined();
// Set the reason for a call that its caller declines after all: decline_this_call() for this one
// only, since its plan stays valid.
void decline_after_all(Reason reason);
void decline_this_call(Reason reason);
// Leaves this thread's blocking call to the library without a look at its plan. A summary counts
// each such call; without one, similar calls go directly to the library from now on.
void leave_blocking(Runtime& runtime, CallId id);

// Returns whether a non-blocking call, about which engine auto learns, can go to the library at
// once: that way is in use and nothing is to be noted. The call is then counted. profiled_by: as
// for Entry (hooks.h); calls from inside MPI do not belong to the site.
bool is_left_at_site(const Plan& plan, const void* profiled_by);

}  // namespace weft
