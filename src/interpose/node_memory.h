// NodeMemory: what the ranks of a communicator share if all of them run on one node.
// Why asked of the MPI library which ranks these are, and then tried: ranks on one kernel may be in
// different containers or user namespaces, where one cannot map what the other made.
#pragma once

#include <mpi.h>

#include <memory>
#include <utility>

#include "shm/node_windows.h"
#include "shm/segment.h"

namespace weft::interpose {

class NodeMemory {
 public:
  NodeMemory(Segment segment, int rank, int ranks, std::int64_t window_bytes)
      : segment_(std::move(segment)), windows_(segment_.data(), rank, ranks, window_bytes) {}

  NodeWindows& windows() { return windows_; }

 private:
  const Segment segment_;
  NodeWindows windows_;
};

// Which ranks share this process's node. Collective over MPI_COMM_WORLD, once.
void find_node();
void forget_node();

// Collective over `comm`, a communicator of Weft's own. nullptr on all ranks where not all are on
// one node, or not all can map the memory; why is said once.
std::unique_ptr<NodeMemory> make_node_memory(MPI_Comm comm, int rank, int ranks,
                                             std::int64_t window_bytes);

}  // namespace weft::interpose
