// Reduces blocks in rank order: each rank receives its block of every rank's vector, all messages
// at once, and then reduces. With any operator each element is combined as x0 op (x1 op (… op
// xp-1)), however the ranks are placed on nodes.
#pragma once

#include <functional>

#include "schedule/builder.h"

namespace weft {

// Reduces this rank's block to `sum`, which must not overlap any input. block(rank) returns where
// the block of `rank` lies in this rank's input. All sends are posted in the first round, so other
// ranks never wait for this rank's progress.
void sum_blocks_in_order(Builder& b, const std::function<Operand(int)>& block, Location sum);

}  // namespace weft
