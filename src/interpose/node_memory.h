// NodeMemory: what the ranks of a communicator share if all of them run on one node.
// Why asked of the MPI library which ranks these are, and then tried: ranks on one kernel may be in
// different containers or user namespaces, where one cannot map what the other made.
#pragma once

#include <mpi.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "shm/node_windows.h"
#include "shm/segment.h"
#include "transport/peer_buffers.h"

namespace weft::interpose {

class NodeMemory {
 public:
  // heaps: of all ranks, or none.
  NodeMemory(Segment segment, int rank, int ranks, std::int64_t window_bytes,
             std::vector<std::byte*> heaps)
      : segment_(std::move(segment)),
        windows_(segment_.data(), rank, ranks, window_bytes),
        heaps_(std::move(heaps)),
        peers_(heaps_) {}

  NodeWindows& windows() { return windows_; }

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

  const Segment segment_;
  NodeWindows windows_;
  const std::vector<std::byte*> heaps_;
  PeerBuffers peers_;
  std::array<Habit, 64> habits_{};
};

// Which ranks share this process's node. Collective over MPI_COMM_WORLD, once.
void find_node();
void forget_node();

// Collective over `comm`, a communicator of Weft's own. nullptr on all ranks where not all are on
// one node, or not all can map the memory; why is said once.
std::unique_ptr<NodeMemory> make_node_memory(MPI_Comm comm, int rank, int ranks,
                                             std::int64_t window_bytes);

}  // namespace weft::interpose
