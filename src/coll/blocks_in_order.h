// Reduction block by block in the order of the ranks: each rank gets its block of everyone's
// vector, all messages at once, and reduces what has come. Whatever the operator, each element is
// combined as x0 op (x1 op (… op xp-1)), however the ranks are spread over nodes.
#pragma once

#include <functional>

#include "schedule/builder.h"

namespace weft {

// Leaves the sum of this rank's block at `sum`, which overlaps no input. block: of a rank, where it
// lies in this rank's input. Other ranks do not wait for this one's progress.
void sum_blocks_in_order(Builder& b, const std::function<Operand(int)>& block, Location sum);

}  // namespace weft
