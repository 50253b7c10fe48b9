// Verifier: proves a schedule right before anything runs it.
// Why: a wrong schedule hangs or corrupts only at some number of ranks, and rarely where it is
// wrong. Debug builds verify every schedule; so does every test of an algorithm.
#pragma once

#include <span>

#include "base/result.h"
#include "schedule/schedule.h"

namespace weft {

// What one rank's schedule shows by itself:
//  - the rounds cover the steps, in order; peers are other ranks of the call;
//  - operands lie inside the buffers (temp and node: in bytes, off the counters of the lines; send,
//  receive: in whole elements of a
//    block or of blocks without gaps, or in bytes of plain data); the two sides of a copy or a
//    reduce have the same payload;
//  - it uses no more of the node's memory than there is, and none where this rank is alone;
//  - it waits for ranks of its own node only;
//  - nothing writes to the send buffer, and no reduce over its own lower operand;
//  - signals count from 1 on;
//  - within a round, no step writes what another posted step reads or writes, and no local step
//    reads what a receive writes (local steps run in order and may depend on each other);
//  - nothing is read from temp, or from the receive buffer where it held no input, before a step of
//    the same or an earlier round wrote it (from a receive: of an earlier round);
//  - every element of the receive buffer that this rank gets is written, unless it is a reduction
//    exactly once, and nothing else of it is: neither gaps nor what is there already in place. Temp
//    is staging and may be written any number of times.
// A step that is the whole collective must be the only one, and is trusted.
Result<bool> verify_local(const Schedule& schedule);

// All of the above for each rank, and what only all together show:
//  - schedule i is that of rank i, and all are of the same collective, root and algorithm;
//  - the ranks at one place of all nodes call the same collectives, in order;
//  - for each ordered pair of ranks, the sends match the receives, in order, in payload bytes;
//  - no deadlock, even if each send waits for its receive;
//  - all ranks of a node use as much of its memory, so that they take the same turns there;
//  - whatever one rank writes to the node's memory and another reads or writes there is kept in
//    order by signals, waits and messages, in every run;
//  - likewise in the buffers that ranks show each other; no rank ends while others use its own, and
//    all of what it gets is there then; every rank finds all;
//  - if they say so, that they are synchronizing.
// Not checked: that operands are combined in the right order, which the simulator's tests do.
Result<bool> verify(std::span<const Schedule> all_ranks);

}  // namespace weft
