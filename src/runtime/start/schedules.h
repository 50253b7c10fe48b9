// The schedules by which a choice is carried out.
#pragma once

#include <memory>

#include "runtime/runtime.h"

namespace weft {

// From the communicator's cache, or built.
std::shared_ptr<const Schedule> schedule_for(const Runtime& runtime, Communicator& communicator,
                                             const Shape& shape, const Choice& choice);
// What is to be tried before it, where the ranks see each other's heaps and no other algorithm was
// asked for; else nullptr. All ranks come to the same answer, whether or not their own buffers are
// shared.
std::shared_ptr<const Schedule> direct_for(Communicator& communicator, const Shape& shape,
                                           const Choice& choice, Kernel kernel);

}  // namespace weft
