// NodeMemory is the shared memory of those ranks of a communicator that run on the same node. The
// MPI library tells which ranks these are, and then sharing is tried out. It may fail, because
// ranks on one kernel may run in different containers or user namespaces.
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

// This rank's view of the shared memory of its node: buffers for collectives (node buffers), and
// access to the application's buffers of the other ranks on the node.
class NodeMemory {
 public:
  // node_buffers: the shared buffers. sharing: the ranks of these buffers (as sorted ranks in
  // MPI_COMM_WORLD) if they can access each other's heaps; otherwise nullptr.
  explicit NodeMemory(std::shared_ptr<NodeBuffers> node_buffers,
                      std::shared_ptr<const std::vector<int>> sharing = nullptr)
      : node_buffers_(std::move(node_buffers)),
        sharing_(std::move(sharing)),
        peers_(shared_ranges(), this->sharing(), process_memory(), one_copy()) {}

  NodeBuffers& node_buffers() { return *node_buffers_; }
  // Returns the ranks of these buffers as sorted ranks in MPI_COMM_WORLD. Returns an empty list if
  // they cannot access each other's heaps.
  std::span<const int> sharing() const {
    return sharing_ ? std::span<const int>(*sharing_) : std::span<const int>();
  }
  // Returns the other ranks' buffers in the blocking call that is in progress. There is at most one
  // such call at a time.
  PeerBuffers& peers() { return peers_; }

 private:
  const std::shared_ptr<NodeBuffers> node_buffers_;
  const std::shared_ptr<const std::vector<int>> sharing_;
  PeerBuffers peers_;
};

// Returns the rank in MPI_COMM_WORLD of each rank of `comm`. For a communicator of an MPI session
// all of them are -1. ranks: the size of `comm`.
std::vector<int> world_ranks_of(MPI_Comm comm, int ranks);

// Finds out the node and the NUMA domain of each rank of the job. It is collective over
// MPI_COMM_WORLD, and must be called only once. With --reproducible the ranks of a node keep their
// order; otherwise, on several nodes, they are grouped by NUMA domain.
void find_nodes(const Config& config, PlanCache& plans);

// Returns the nodes of these ranks; nullptr if they are unknown, or if no two ranks share a node.
std::shared_ptr<const Nodes> nodes_of(const std::vector<int>& world_ranks);
// Returns the NUMA domains of these ranks, which must all be on one node. Returns nullptr if all
// are in the same domain, or if some rank may run in several.
std::shared_ptr<const Domains> domains_of(const std::vector<int>& world_ranks);

// Returns the type of the processors on which these ranks run; Processor::other if there are
// several types.
Processor processor_of(const std::vector<int>& world_ranks);

// Returns these ranks, sorted, if they can access each other's heaps; otherwise nullptr. All
// communicators of the same ranks share the returned object.
std::shared_ptr<const std::vector<int>> ranks_that_share(std::vector<int> world_ranks);

// Additional space in a communicator's segment for persistent requests. It is enough for one
// request with large buffers, or for several hundred with small ones. It takes only addresses until
// it is used.
inline constexpr std::int64_t kRoomForRequests_bytes = 32 << 20;

// Creates a shared memory segment on each node, with kRoomForRequests_bytes of additional space;
// collective over the ranks of `talk`. bytes: the required size. Returns nullopt on all ranks if
// some rank cannot map its node's segment; the reason is reported once per program.
std::optional<std::shared_ptr<Segment>> segment_by(SegmentExchange& talk, int rank, int node_rank,
                                                   std::int64_t bytes);

// The arguments with which the ranks of a communicator agree on shared memory for each of their
// nodes.
struct RoomWanted {
  MPI_Comm comm;       // a communicator of all ranks, with error handler MPI_ERRORS_RETURN
  const Route& route;  // communicator, ranks and tag for messages between the ranks
  int tag;
  // The size of the memory that is needed besides the node buffers, in bytes. It must be equal on
  // all ranks of a node.
  std::int64_t further_bytes;
};

// Returns the shared memory of this rank's node: that of an earlier communicator with the same
// ranks if it is unused, otherwise new memory. It is collective over the ranks. Returns nullptr if
// this rank is alone on its node. Returns nullopt on all ranks if some node cannot have shared
// memory. nodes: the node of each rank. world_ranks: the ranks in MPI_COMM_WORLD.
std::optional<std::shared_ptr<NodeSharedMemory>> shared_memory_on_node(
    const RoomWanted& wanted, int rank, const Nodes& nodes, const std::vector<int>& world_ranks);

}  // namespace weft
