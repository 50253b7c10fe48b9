// NodeMemory: the memory that those ranks of a communicator share which run on one node. The MPI
// library says which ranks these are, and sharing is then tried: ranks on one kernel may be in
// different containers or user namespaces, in which one cannot map the other's memory.
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
#include "shm/node_room.h"
#include "transport/mpi/mpi_transport.h"
#include "transport/peer_buffers.h"

namespace weft {

// The node buffers, and what the ranks see of each other's buffers.
class NodeMemory {
 public:
  // sharing: the ranks of these node buffers, sorted as in MPI_COMM_WORLD, if they can access each
  // other's heaps.
  explicit NodeMemory(std::shared_ptr<NodeBuffers> node_buffers,
                      std::shared_ptr<const std::vector<int>> sharing = nullptr)
      : node_buffers_(std::move(node_buffers)),
        sharing_(std::move(sharing)),
        peers_(shared_ranges(), this->sharing(), process_memory(), one_copy()) {}

  NodeBuffers& node_buffers() { return *node_buffers_; }
  // Returns the sorted ranks in MPI_COMM_WORLD; empty if they cannot access each other's heaps.
  std::span<const int> sharing() const {
    return sharing_ ? std::span<const int>(*sharing_) : std::span<const int>();
  }
  // Returns the buffers of the blocking call under way; there is one at a time.
  PeerBuffers& peers() { return peers_; }

 private:
  const std::shared_ptr<NodeBuffers> node_buffers_;
  const std::shared_ptr<const std::vector<int>> sharing_;
  PeerBuffers peers_;
};

// Returns the ranks in MPI_COMM_WORLD of a communicator's ranks.
std::vector<int> world_ranks_of(MPI_Comm comm, int ranks);

// Finds out which ranks run on which node, and in which NUMA domain. Collective over
// MPI_COMM_WORLD, once. With --reproducible and several nodes the ranks of each node have local
// ranks in rank order, otherwise domain by domain.
void find_nodes(const Config& config, PlanCache& plans);

// Returns the nodes of these ranks; nullptr if they are not known, or no two ranks share one.
std::shared_ptr<const Nodes> nodes_of(const std::vector<int>& world_ranks);
// Returns the domains of ranks on one node; nullptr if there are no two, or some rank has none.
std::shared_ptr<const Domains> domains_of(const std::vector<int>& world_ranks);

// Returns the processor if all ranks have the same; else Processor::other.
Processor processor_of(const std::vector<int>& world_ranks);

// Returns these ranks, sorted, if they can access each other's heaps; else nullptr. The object is
// shared by all communicators of these ranks.
std::shared_ptr<const std::vector<int>> ranks_that_share(std::vector<int> world_ranks);

// The further bytes of a communicator's segment for its persistent requests: enough for one of long
// data, or some hundred of short ones. Until they are used they take addresses only.
inline constexpr std::int64_t kRoomForRequests_bytes = 32 << 20;

// Behaves as agree_on_segment(), with some to spare. Returns nothing on all ranks if some rank
// cannot map its node's segment; the reason is reported once per program.
std::optional<std::shared_ptr<Segment>> segment_by(SegmentTalk& talk, int rank, int node_rank,
                                                   std::int64_t bytes);

// The means by which the ranks of a communicator agree on a room.
struct RoomWanted {
  MPI_Comm comm;       // of them all, whose errors return
  const Route& route;  // for messages among them, with this tag
  int tag;
  std::int64_t further_bytes;  // beside node buffers, alike on a node
};

// Collective over the ranks, which are on these nodes and have these ranks in MPI_COMM_WORLD.
// Returns a kept or new room on each node; nothing on all ranks if there is none; nullptr if this
// rank is alone on its node.
std::optional<std::shared_ptr<NodeRoom>> room_on_node(const RoomWanted& wanted, int rank,
                                                      const Nodes& nodes,
                                                      const std::vector<int>& world_ranks);

}  // namespace weft
