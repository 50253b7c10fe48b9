// Lets the ranks of a node tell each other their edges in a neighbourhood collective: which rank
// gives how much to which. This is done while a persistent collective is initialised.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "runtime/trial/internal_collective.h"
#include "schedule/node_edges.h"

namespace weft {

// Returns the edges between the ranks of this rank's node; collective over the communicator.
// Returns nullptr on all ranks if the two ends of any edge state different sizes, if the data do
// not fit into some node's shared memory, or if ranks make different calls. shape: must contain
// Shape::nodes.
std::shared_ptr<const NodeEdges> told_edges(InternalCollective& internal_collective,
                                            const Shape& shape);

// Returns the bytes of the longest part of any rank in a gatherv, scatterv, alltoallv or alltoallw,
// whose size no rank knows; collective over the communicator. Returns nullopt on all ranks if the
// two ends of any block state different sizes, or if ranks make different calls.
std::optional<std::int64_t> longest_part(InternalCollective& internal_collective,
                                         const Shape& shape);

}  // namespace weft
