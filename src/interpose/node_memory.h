// NodeMemory: what the ranks of one communicator share if all of them run on one node.
// Why asked of the MPI library which ranks these are, and then tried: ranks on one kernel may be in
// different containers or user namespaces, where one cannot map what the other made.
#pragma once

#include <mpi.h>

#include <memory>

#include "shm/node_windows.h"
#include "shm/segment.h"

namespace weft::interpose {

class NodeMemory {
 public:
  NodeMemory(Segment segment, int rank, int ranks);

  NodeWindows windows;

 private:
  Segment segment_;
};

// Which ranks of MPI_COMM_WORLD share this process's node. Collective over MPI_COMM_WORLD, once.
void find_node();

// Collective over `shadow`, a communicator of Weft's own: nullptr on all ranks where not all are on
// one node, or not all can map the memory; why is said once.
std::unique_ptr<NodeMemory> make_node_memory(MPI_Comm shadow, int rank, int ranks);

}  // namespace weft::interpose
