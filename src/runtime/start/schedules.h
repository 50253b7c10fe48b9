// The third of four steps from a call to its plan (plans.h). It finds the schedules for the chosen
// engine and algorithm.
#pragma once

#include <memory>
#include <optional>

#include "runtime/job/runtime.h"
#include "runtime/start/choice.h"

namespace weft {

struct ScheduleResult {
  std::optional<Reason> declined{};
  Engine engine = Engine::native;
  Kernel kernel = nullptr;  // the reduction function; nullptr if MPI_Reduce_local must be used
  std::shared_ptr<const Schedule> schedule{};
  Needs needs{};  // what the algorithm requires

  bool is_alone() const { return needs_no_messages(*schedule, kernel != nullptr); }
};

// Returns the schedule for a call, or the reason for which Weft declines it. The result is equal on
// all ranks.
ScheduleResult schedule_for(const PlanRequest& asked, const Eligible& eligible,
                            const ChoiceResult& chosen);

// Returns a schedule from the communicator's cache, or builds it.
std::shared_ptr<const Schedule> schedule_for(const Runtime& runtime, Communicator& communicator,
                                             const Shape& shape, const Choice& choice);
// Returns the direct schedule, by which ranks use each other's buffers in place. Returns nullptr if
// the ranks cannot access each other's heaps, or if another algorithm was requested. The result is
// equal on all ranks, even if some ranks' buffers turn out not to be accessible.
std::shared_ptr<const Schedule> direct_for(Communicator& communicator, const Shape& shape,
                                           const Choice& choice, Kernel kernel);

}  // namespace weft
