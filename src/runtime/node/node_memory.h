// NodeMemory: the memory shared by those ranks of a communicator that run on the same node. The MPI
// library tells which ranks these are; then sharing is tried, because ranks on one kernel may be in
// different containers or user namespaces, and unable to map each other's memory.
#pragma once

#include <mpi.h>

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/processor.h"
#include "runtime/node/node_heaps.h"
#include "runtime/node/node_segment.h"
#include "runtime/node/reach.h"
#include "schedule/nodes.h"
#include "shm/node_shared_memory.h"
#include "transport/mpi/mpi_transport.h"
#include "transport/peer_buffers.h"

namespace weft {

// This rank's view of its node's memory: the node buffers, and the access that the ranks have to
// each other's buffers.
class NodeMemory {
 public:
  // sharing: the sorted ranks in MPI_COMM_WORLD of the node buffers' ranks, if they can access each
  // other's heaps.
  explicit NodeMemory(std::shared_ptr<NodeBuffers> node_buffers,
                      std::shared_ptr<const std::vector<int>> sharing = nullptr)
      : node_buffers_(std::move(node_buffers)),
        sharing_(std::move(sharing)),
        peers_(shared_ranges(), this->sharing(), process_memory(), one_copy()) {}

  NodeBuffers& node_buffers() { return *node_buffers_; }
  // Returns the ranks of the node buffers as sorted ranks in MPI_COMM_WORLD; empty if these ranks
  // cannot access each other's heaps.
  std::span<const int> sharing() const {
    return sharing_ ? std::span<const int>(*sharing_) : std::span<const int>();
  }
  // Returns the peers' buffers for the blocking call under way; there is at most one at a time.
  PeerBuffers& peers() { return peers_; }

 private:
  const std::shared_ptr<NodeBuffers> node_buffers_;
  const std::shared_ptr<const std::vector<int>> sharing_;
  PeerBuffers peers_;
};

// Returns the ranks in MPI_COMM_WORLD of a communicator's ranks; -1 for each rank of a session's
// communicator.
std::vector<int> world_ranks_of(MPI_Comm comm, int ranks);

// Determines node and NUMA domain of each rank. Is called once, collective over MPI_COMM_WORLD.
// With --reproducible on several nodes, local ranks follow the order of ranks, otherwise they are
// grouped by domain.
void find_nodes(const Config& config, PlanCache& plans);

// Returns the nodes of these ranks; nullptr if they are not known, or no two ranks share a node.
std::shared_ptr<const Nodes> nodes_of(const std::vector<int>& world_ranks);
// Returns the NUMA domains of ranks on one node; nullptr if all are in the same domain, or some
// rank is in none.
std::shared_ptr<const Domains> domains_of(const std::vector<int>& world_ranks);

// Returns the kind of processor if it is equal on all ranks; otherwise Processor::other.
Processor processor_of(const std::vector<int>& world_ranks);

// Returns these ranks, sorted, if they can access each other's heaps; otherwise nullptr. All
// communicators of these ranks share the object.
std::shared_ptr<const std::vector<int>> ranks_that_share(std::vector<int> world_ranks);

// Further bytes in a communicator's segment for its persistent requests: enough for one with large
// buffers, or several hundred with small ones. Until they are used they take only addresses.
inline constexpr std::int64_t kRoomForRequests_bytes = 32 << 20;

// Makes a segment for the ranks of each node by agree_on_segment(), with kRoomForRequests_bytes as
// spare bytes. Returns nullopt on all ranks if some rank cannot map its node's segment; the reason
// is reported once per program.
std::optional<std::shared_ptr<Segment>> segment_by(SegmentExchange& talk, int rank, int node_rank,
                                                   std::int64_t bytes);

// The arguments with which the ranks of a communicator agree on their nodes' shared memory
// (NodeSharedMemory).
struct RoomWanted {
  MPI_Comm comm;       // communicator of all ranks, with error handler MPI_ERRORS_RETURN
  const Route& route;  // route and tag for messages among the ranks
  int tag;
  std::int64_t further_bytes;  // bytes needed besides the node buffers; equal on all ranks of a
                               // node
};

// Returns the shared memory of this rank's node: that of an earlier communicator with the same
// ranks, or new memory. Returns nullopt on all ranks if some node has none; nullptr if this rank is
// alone on its node. Collective over the ranks. nodes, world_ranks: their nodes and ranks in
// MPI_COMM_WORLD.
std::optional<std::shared_ptr<NodeSharedMemory>> shared_memory_on_node(
    const RoomWanted& wanted, int rank, const Nodes& nodes, const std::vector<int>& world_ranks);

}  // namespace weft
