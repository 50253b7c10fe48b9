// Provides the schedules by which a choice is carried out.
#pragma once

#include <memory>

#include "runtime/runtime.h"

namespace weft {

// Returns a schedule from the communicator's cache, or builds it.
std::shared_ptr<const Schedule> schedule_for(const Runtime& runtime, Communicator& communicator,
                                             const Shape& shape, const Choice& choice);
// Returns the direct schedule to try first, if the ranks can access each other's heaps and no other
// algorithm was asked for; else nullptr. All ranks get the same answer, whether or not their own
// buffers are shared.
std::shared_ptr<const Schedule> direct_for(Communicator& communicator, const Shape& shape,
                                           const Choice& choice, Kernel kernel);

}  // namespace weft
