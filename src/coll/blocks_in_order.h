// Reduces a block in rank order: each rank receives its block of every rank's vector, all messages
// at once, and then reduces. With any operator each element is combined as x0 op (x1 op (… op
// xp-1)), however the ranks are placed on nodes.
#pragma once

#include <functional>

#include "schedule/builder.h"

namespace weft {

// Leaves the sum of this rank's block at `sum`, which must not overlap any input. block(rank)
// returns where that rank's block lies in this rank's input. Other ranks do not wait for this one's
// progress.
void sum_blocks_in_order(Builder& b, const std::function<Operand(int)>& block, Location sum);

}  // namespace weft
