// Examples of collectives that a number of bytes does not describe completely.
#pragma once

#include "schedule/collective.h"

namespace weft {

// Returns the shape with its blocks and neighbours: irregular collectives get equal blocks, one
// after the other; neighborhoods are non-periodic grids, as square as the number of ranks allows.
Shape example_of(Shape shape);

}  // namespace weft
