#include "runtime/start/operations.h"

#include "runtime/node/node_memory.h"
#include "runtime/node/reach.h"

namespace weft {

PublishedBuffers shown_buffers(const Plan& plan, const Call& call, ProcessMemory::Use use) {
  return plan.direct.shows.in(call, plan.communicator->memory->sharing(), use);
}

std::unique_ptr<PeerBuffers> peers_of(const Communicator& communicator) {
  return std::make_unique<PeerBuffers>(shared_ranges(), communicator.memory->sharing(),
                                       process_memory(), one_copy());
}

std::shared_ptr<CollectiveOperation> operation_in_order(CallId id, const Call& call,
                                                        const Plan& plan) {
  auto operation =
      single_operation<CollectiveOperation>(id, call, plan, next_tag(*plan.communicator));
  take_turn(*operation, plan, Ends::any_time);
  return operation;
}

}  // namespace weft
