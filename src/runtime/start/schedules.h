// The third step from a call to its plan: the schedules by which a choice is carried out.
#pragma once

#include <memory>
#include <optional>

#include "runtime/job/runtime.h"
#include "runtime/start/choice.h"

namespace weft {

struct Scheduled {
  std::optional<Reason> declined{};
  Engine engine = Engine::native;
  Kernel kernel = nullptr;  // of reductions; nullptr: MPI_Reduce_local
  std::shared_ptr<const Schedule> schedule{};
  Needs needs{};  // of the algorithm

  bool is_alone() const { return stands_alone(*schedule, kernel != nullptr); }
};

// Is rank-invariant.
Scheduled schedule_for(const Asked& asked, const Eligible& eligible, const Chosen& chosen);

// Returns a schedule from the communicator's cache, or builds it.
std::shared_ptr<const Schedule> schedule_for(const Runtime& runtime, Communicator& communicator,
                                             const Shape& shape, const Choice& choice);
// Returns the direct schedule to try first, if the ranks can access each other's heaps and no other
// algorithm was asked for; else nullptr. All ranks get the same answer, whether or not their own
// buffers are shared.
std::shared_ptr<const Schedule> direct_for(Communicator& communicator, const Shape& shape,
                                           const Choice& choice, Kernel kernel);

}  // namespace weft
