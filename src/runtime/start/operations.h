// Makes the collectives that carry out calls according to their plans.
#pragma once

#include <memory>
#include <utility>

#include "runtime/comm/communicators.h"
#include "runtime/request/requests.h"
#include "runtime/start/plan.h"
#include "shm/process_memory.h"
#include "transport/peer_buffers.h"

namespace weft {

template <class Made, class... More>
[[gnu::always_inline]] inline std::shared_ptr<Made> make_operation(CallId id, const Call& call,
                                                                   const Plan& plan, int tag,
                                                                   More... more) {
  auto made = std::make_shared<Made>(id, call, plan.communicator->shared_from_this(), plan.schedule,
                                     plan.kernel, tag, std::move(more)...);
  if (plan.carrier == Carrier::callers) made->leave_to_callers();
  return made;
}

// Returns the schedule that is tried first. This is the direct one, which uses the other ranks'
// buffers in place, if there is one. Both schedules use the same turn of the node's shared buffers.
inline const Schedule& first_of(const Plan& plan) {
  return plan.direct ? *plan.direct.schedule : *plan.schedule;
}

// Reserves the collective's turns: the next use of the node's shared buffers if the schedule uses
// them, and the next collective between leaders of nodes if the schedule contains one. It must be
// called before the first advance().
inline void take_turn(CollectiveOperation& operation, const Plan& plan, Ends ends) {
  if (Leaders* leaders = plan.communicator->leaders.get()) operation.lead(*leaders);
  const Schedule& first = first_of(plan);
  if (first.node_bytes > 0)
    operation.take_turn(plan.communicator->memory->node_buffers(), ends, first);
}

// Tells the other ranks that they cannot use this rank's buffers in place.
inline constexpr PublishedBuffers kShowsNothing{{.memory = ShownBuffer::kNotShared},
                                                {.memory = ShownBuffer::kNotShared}};
PublishedBuffers shown_buffers(const Plan& plan, const Call& call,
                               ProcessMemory::Use use = ProcessMemory::Use::once);
std::unique_ptr<PeerBuffers> peers_of(const Communicator& communicator);

// Returns the tag for the next collective on the communicator that is not persistent.
inline int next_tag(Communicator& communicator) {
  return communicator.tags.of_single(communicator.next_in_sequence());
}

// Makes the object for a collective that is not persistent, and whose state is not on the stack.
template <class Made>
std::shared_ptr<Made> single_operation(CallId id, const Call& call, const Plan& plan, int tag) {
  auto operation = make_operation<Made>(id, call, plan, tag, plan.direct.schedule);
  operation->set_in_memory(plan.is_alone());
  if (!plan.direct) return operation;
  auto peers = peers_of(*plan.communicator);
  peers->begin(operation->moves_in_pieces() ? kShowsNothing : shown_buffers(plan, call));
  operation->reach(std::move(peers));
  return operation;
}

// Makes a collective that starts now. It gets the next sequence number of the communicator, and the
// next turn of the node's shared buffers.
std::shared_ptr<CollectiveOperation> operation_in_order(CallId id, const Call& call,
                                                        const Plan& plan);

}  // namespace weft
