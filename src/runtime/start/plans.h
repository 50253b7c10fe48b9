// Plans: what Weft does with a call, whoever carries it out. Made once for calls that look alike,
// and remembered by each thread.
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

// How the caller will learn of the end.
enum class Use : std::uint8_t { request, persistent, blocking };

struct Site;
class Ways;

// What Weft does with a call.
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

  // What follows from the schedule goes with it. After `kernel` is known.
  void use(std::shared_ptr<const Schedule> other) {
    schedule = std::move(other);
    alone = stands_alone(*schedule, kernel != nullptr);
  }
};

// The plans of one call for the ways of its site, each made when it is first taken: by the thread
// that makes the call or, where it is held, by whoever lets it go, while that thread may look at
// the plans that it remembers.
class Ways {
 public:
  Ways(Site* of, std::size_t ways) : site(of), plans_(ways) {}
  ~Ways() {
    for (const auto& plan : plans_) delete plan.load(std::memory_order_relaxed);
  }
  Ways(const Ways&) = delete;
  Ways& operator=(const Ways&) = delete;

  // nullptr: not taken yet.
  const Plan* plan(int way) const {
    return plans_[static_cast<std::size_t>(way)].load(std::memory_order_acquire);
  }
  // Once for each; no two threads at a time.
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

// Of what its start has brought as far as it goes: the thread is to go on with it.
bool worth_the_thread(Engine engine, const Schedule& schedule);

// Good until this thread's next call; nullptr: Weft leaves the call to the library.
const Plan* plan_for(Runtime& runtime, const Call& call, Use use);
// Why it did so with this thread's last such call.
Reason why_declined();
// The same of one that the caller declines after all; and of one by its site, whose plan holds.
void decline_after_all(Reason reason);
void decline_this_call(Reason reason);
// Leaves this thread's blocking call to the library without a look at its plan. A summary counts
// each such call; without one, those that are alike go straight to the library from now on.
void leave_blocking(Runtime& runtime, CallId id);

// Of a plan that engine auto learns about, for a non-blocking call: the library's way is in use,
// and there is nothing to note. The call is counted if so. profiled_by: as Entry has it (hooks.h);
// a call from inside MPI is none of the site's.
bool is_left_at_site(const Plan& plan, const void* profiled_by);

}  // namespace weft
