// Verifier: checks a schedule before it runs, since a wrong schedule hangs or corrupts data only
// for some numbers of ranks, and rarely where the error is. Debug builds verify every schedule, and
// so does every test of an algorithm.
#pragma once

#include <span>

#include "base/result.h"
#include "schedule/schedule.h"

namespace weft {

// Checks one rank's schedule by itself:
//  - the rounds cover the steps, in order; peers are other ranks of the call;
//  - operands lie inside the buffers (temp and node: in bytes, outside the slots' counters; send
//    and receive: in whole elements of a block or of blocks without gaps, or in bytes of plain
//    data); both sides of a copy or a reduction have the same payload;
//  - it uses no more node memory than there is, and none if this rank is alone;
//  - it waits only for ranks of its own node;
//  - nothing writes to the send buffer, and no reduction over its own lower operand;
//  - signals count from 1 on;
//  - within a round, no step writes data that another posted step reads or writes, and no local
//    step reads data that a receive writes (local steps run in order and may depend on each other);
//  - data in temp, and in the receive buffer unless it held input, are read only after a step of
//    the same or an earlier round has written them (a receive: of an earlier round);
//  - every element of the receive buffer that this rank gets is written, exactly once unless it is
//    a reduction, and nothing else is: neither gaps nor data that are already in place. Temp may be
//    written any number of times.
// A step that is the whole collective must be the only one, and is trusted.
Result<bool> verify_local(const Schedule& schedule);

// Checks all of the above for each rank, and the schedules together:
//  - schedule i is that of rank i, and all are of the same collective, root and algorithm;
//  - the ranks with one node rank call the same collectives, in order;
//  - for each ordered pair of ranks the sends match the receives, in order, in payload bytes;
//  - there is no deadlock, even if each send waits for its receive;
//  - all ranks of a node use equally much of its memory, so that they take the same turns there;
//  - accesses by different ranks to the node's memory, one of them a write, are ordered by signals,
//    waits and messages, in every run;
//  - likewise in the buffers that ranks show each other; no rank ends while others use its own, and
//    all of its output is then complete; every rank finds all buffers;
//  - schedules that claim to be synchronizing are.
// The order in which operands are combined is not checked; the simulator's tests do that.
Result<bool> verify(std::span<const Schedule> all_ranks);

}  // namespace weft
