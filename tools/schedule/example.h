// An example of the collectives of which a number of bytes does not say all.
#pragma once

#include "schedule/collective.h"

namespace weft {

// The shape with its blocks and neighbours filled in: irregular collectives have equal blocks, one
// after the other; neighborhoods are grids with ends, as square as the number of ranks allows.
Shape example_of(Shape shape);

}  // namespace weft
