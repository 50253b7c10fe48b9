// Verifier: proves a schedule before it runs. A wrong schedule hangs or corrupts data only for some
// numbers of ranks, and seldom at the step that is wrong. Debug builds verify every schedule, and
// so does every test of an algorithm.
#pragma once

#include <span>

#include "base/result.h"
#include "schedule/schedule.h"

namespace weft {

// Checks one rank's schedule by itself:
//   - the rounds contain all steps, in order; peers are other ranks of the call;
//   - operands lie inside the buffers: in temporary and shared memory anywhere except in the
//     counters of the slots, in the user's buffers at whole elements of one or several adjacent
//     blocks (at any byte if the data are plain, that is, without gaps);
//   - both sides of a copy or a reduction have equally many bytes of data;
//   - it uses no more shared memory than there is, and none if this rank is alone;
//   - it waits only for ranks of its own node, and its signals count from 1 on;
//   - nothing writes to the send buffer, and no reduction writes over its own lower operand;
//   - within a round, no step writes data that a posted step reads or writes, and no reduction or
//     copy reads data that a receive writes (reductions and copies run in order and may depend on
//     each other);
//   - data in the temporary buffer, and in the receive buffer unless it held input, are read only
//     after a step has written them; a receive has written at the end of its round;
//   - every element of this rank's output is written, exactly once unless the call is a reduction;
//     nothing else in the receive buffer is, neither gaps nor data that are already in place.
// A step that calls the MPI library for the whole collective must be the only step, and is trusted.
Result<bool> verify_local(const Schedule& schedule);

// Checks the schedule of each rank as verify_local() does, and all of them together:
//   - schedule i is that of rank i, and all are of the same collective, root and algorithm;
//   - the ranks with one node rank call the same collectives of the MPI library, in order;
//   - for each sender and receiver the sends match the receives, in order, in bytes of data;
//   - there is no deadlock, even if each send waits for its receive;
//   - all ranks of a node use equally much shared memory, so that they use the same node buffers;
//   - whenever two ranks access the same shared memory and one of them writes, signals, waits and
//     messages order the two accesses in every run;
//   - the same holds in user's buffers that other ranks use in place; no rank ends while others use
//     its buffers, its output is complete by then, and every rank finds all buffers;
//   - a schedule that claims to be synchronizing is.
// The order in which operands are combined is not checked; the simulator's tests do that.
Result<bool> verify(std::span<const Schedule> all_ranks);

}  // namespace weft
