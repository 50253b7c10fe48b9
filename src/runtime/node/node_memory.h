// NodeMemory: what those ranks of a communicator share that run on one node, on each node for
// itself. Why asked of the MPI library which ranks these are, and then tried: ranks on one kernel
// may be in different containers or user namespaces, where one cannot map what the other made.
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
#include "runtime/node/shared_buffers.h"
#include "schedule/nodes.h"
#include "shm/node_room.h"
#include "transport/mpi/mpi_transport.h"
#include "transport/peer_buffers.h"

namespace weft {

// Windows, and what the ranks see of each other's buffers.
class NodeMemory {
 public:
  // sharing: the ranks of these windows, in the world and in order, if they see each other's heaps.
  explicit NodeMemory(std::shared_ptr<NodeWindows> windows,
                      std::shared_ptr<const std::vector<int>> sharing = nullptr)
      : windows_(std::move(windows)),
        sharing_(std::move(sharing)),
        peers_(shared_ranges(), this->sharing(), process_memory(), one_copy()) {}

  NodeWindows& windows() { return *windows_; }
  // The ranks by their numbers in MPI_COMM_WORLD, in order; empty: they do not see each other's
  // heaps.
  std::span<const int> sharing() const {
    return sharing_ ? std::span<const int>(*sharing_) : std::span<const int>();
  }
  // For the blocking call under way, of which there is one at a time.
  PeerBuffers& peers() { return peers_; }

 private:
  const std::shared_ptr<NodeWindows> windows_;
  const std::shared_ptr<const std::vector<int>> sharing_;
  PeerBuffers peers_;
};

// The ranks' numbers in MPI_COMM_WORLD.
std::vector<int> world_ranks_of(MPI_Comm comm, int ranks);

// Which ranks run on which node, in which of its NUMA domains. Collective over MPI_COMM_WORLD,
// once. With --reproducible the ranks of each of several nodes have places in their order, else
// domain by domain.
void find_nodes(const Config& config, PlanCache& plans);

// The same of a communicator of these ranks; nullptr where it is not known, or no two ranks are on
// one node.
std::shared_ptr<const Nodes> nodes_of(const std::vector<int>& world_ranks);
// Of one whose ranks are on one node; nullptr where there are no two domains, or some rank has
// none.
std::shared_ptr<const Domains> domains_of(const std::vector<int>& world_ranks);

// If all ranks say the same; else Processor::other.
Processor processor_of(const std::vector<int>& world_ranks);

// These, in the world and in order, if they see each other's heaps; else nullptr. The same object
// for all communicators of these ranks.
std::shared_ptr<const std::vector<int>> ranks_that_share(std::vector<int> world_ranks);

// Further bytes of a communicator's segment, for its persistent requests: one of long data, or some
// hundred of short. They cost addresses only, until they are used.
inline constexpr std::int64_t kRoomForRequests_bytes = 32 << 20;

// As agree_on_segment(), with some to spare. No value on all ranks where not all can map that of
// their node; why is said once in a program.
std::optional<std::shared_ptr<Segment>> segment_by(SegmentTalk& talk, int rank, int place,
                                                   std::int64_t bytes);

// By what the ranks of a communicator come to a room.
struct RoomWanted {
  MPI_Comm comm;       // of them all, whose errors return
  const Route& route;  // for messages among them, with this tag
  int tag;
  std::int64_t further_bytes;  // beside windows, alike on a node
};

// Collective over the ranks, which are on these nodes and have these numbers in the world: on each
// node a room, a kept one or a new one. No value on all ranks where there is none to be had;
// nullptr where this rank is alone on its node.
std::optional<std::shared_ptr<NodeRoom>> room_on_node(const RoomWanted& wanted, int rank,
                                                      const Nodes& nodes,
                                                      const std::vector<int>& world_ranks);

}  // namespace weft
