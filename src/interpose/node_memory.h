// NodeMemory: what those ranks of a communicator share that run on one node, on each node for
// itself. Why asked of the MPI library which ranks these are, and then tried: ranks on one kernel
// may be in different containers or user namespaces, where one cannot map what the other made.
#pragma once

#include <mpi.h>

#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "schedule/nodes.h"
#include "shm/node_windows.h"
#include "shm/segment.h"
#include "transport/peer_buffers.h"

namespace weft::interpose {

class NodeMemory {
 public:
  // This rank is at `place` among the ranks of its node. heaps: of all these, or none.
  NodeMemory(Segment segment, int place, int ranks, std::int64_t window_bytes,
             std::vector<std::byte*> heaps)
      : segment_(std::move(segment)),
        windows_(segment_.data(), place, ranks, window_bytes),
        heaps_(std::move(heaps)),
        peers_(heaps_) {}

  NodeWindows& windows() { return windows_; }
  // All have mapped it.
  void close_to_others() { segment_.close_to_others(); }

  // Where the ranks' shared heaps begin here; empty: they do not see each other's.
  const std::vector<std::byte*>& heaps() const { return heaps_; }
  // For the blocking call under way, of which there is one at a time.
  PeerBuffers& peers() { return peers_; }

  // Whether to look for shared buffers in the next call like this one. Where there were none the
  // last times, it is worth it ever more seldom; so all ranks, which have seen the same, agree.
  bool worth_looking(std::uint32_t fingerprint);
  void looked(std::uint32_t fingerprint, bool found);

 private:
  struct Habit {
    std::uint8_t pause = 0;  // calls to let pass after one in vain
    std::uint8_t left = 0;   // of these
  };
  Habit& habit(std::uint32_t fingerprint) { return habits_[fingerprint % habits_.size()]; }

  Segment segment_;
  NodeWindows windows_;
  const std::vector<std::byte*> heaps_;
  PeerBuffers peers_;
  std::array<Habit, 64> habits_{};
};

// Which ranks run on which node, in which of its NUMA domains. Collective over MPI_COMM_WORLD,
// once.
void find_nodes();

// The same of a communicator; nullptr where it is not known, or no two ranks are on one node.
std::shared_ptr<const Nodes> nodes_of(MPI_Comm comm, int ranks);
// Of one whose ranks are on one node; nullptr where there are no two domains, or some rank has
// none.
std::shared_ptr<const Domains> domains_of(MPI_Comm comm, int ranks);

// Collective over `comm`, a communicator of Weft's own whose ranks are on these nodes. No value on
// all ranks where not all can map the memory of their node; why is said once. nullptr where this
// rank is alone on its node. window_bytes may differ between nodes.
std::optional<std::unique_ptr<NodeMemory>> make_node_memory(MPI_Comm comm, int rank,
                                                            const Nodes& nodes,
                                                            std::int64_t window_bytes);

}  // namespace weft::interpose
