// Ranks of a node tell each other their edges of a neighbourhood, while a persistent collective is
// initialised.
#pragma once

#include <memory>

#include "runtime/trial/internal_collective.h"
#include "schedule/node_edges.h"

namespace weft {

// Collective over the communicator. Returns the edges of this rank's node, on all ranks alike, or
// nullptr on all: if the two ends of some edge do not say the same about it, if the data do not fit
// the memory of some node, or if ranks make different calls. shape: with Shape::nodes.
std::shared_ptr<const NodeEdges> told_edges(InternalCollective& internal_collective,
                                            const Shape& shape);

}  // namespace weft
