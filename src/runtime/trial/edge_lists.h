// Edge lists: the messages of a rank in a neighbourhood collective as numbers, in which it tells
// them to the other ranks of its node.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/node_edges.h"

namespace weft {

using EdgeList = std::vector<std::int64_t>;

EdgeList listed(const NodeEdges::OfRank& edges);
// Returns the edges of each rank of this rank's node, by node rank. own: this rank's list, filled
// up to the length of all lists. others: the lists of the other ranks, in the order of
// among_node().sources.
std::vector<NodeEdges::OfRank> edges_in(const Shape& shape, const EdgeList& own,
                                        const EdgeList& others);
// Returns the shape of the neighbourhood collective in which the ranks of each node of `shape`
// exchange lists of so many words.
Shape among_node(const Shape& shape, std::int64_t words);

}  // namespace weft
