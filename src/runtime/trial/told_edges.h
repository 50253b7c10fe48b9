// Lets the ranks of a node tell each other their edges in a neighbourhood collective: which rank
// gives how much to which. This is done while a persistent collective is initialised.
#pragma once

#include <memory>

#include "runtime/trial/internal_collective.h"
#include "schedule/node_edges.h"

namespace weft {

// Returns the edges between the ranks of this rank's node; collective over the communicator.
// Returns nullptr on all ranks if the two ends of any edge state different sizes, if the data do
// not fit into some node's shared memory, or if ranks make different calls. shape: must contain
// Shape::nodes.
std::shared_ptr<const NodeEdges> told_edges(InternalCollective& internal_collective,
                                            const Shape& shape);

}  // namespace weft
