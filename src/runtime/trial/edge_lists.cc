// A list contains the numbers of outgoing and of incoming messages, then the other rank and the
// bytes of each message.
#include "runtime/trial/edge_lists.h"

namespace weft {

EdgeList listed(const NodeEdges::OfRank& edges) {
  EdgeList list{static_cast<std::int64_t>(edges.out.size()),
                static_cast<std::int64_t>(edges.in.size())};
  for (const auto* side : {&edges.out, &edges.in})
    for (const Edge& edge : *side) list.insert(list.end(), {edge.peer, edge.bytes});
  return list;
}

namespace {

NodeEdges::OfRank edges_in(const std::int64_t* list) {
  NodeEdges::OfRank edges;
  edges.out.resize(static_cast<std::size_t>(*list++));
  edges.in.resize(static_cast<std::size_t>(*list++));
  for (auto* side : {&edges.out, &edges.in})
    for (Edge& edge : *side) {
      edge.peer = static_cast<int>(*list++);
      edge.bytes = *list++;
    }
  return edges;
}

}  // namespace

std::vector<NodeEdges::OfRank> edges_in(const Shape& shape, const EdgeList& own,
                                        const EdgeList& others) {
  std::vector<NodeEdges::OfRank> ranks;
  const std::int64_t* next = others.data();
  for (const int rank : shape.nodes->ranks(node_of(shape))) {
    ranks.push_back(edges_in(rank == shape.rank ? own.data() : next));
    if (rank != shape.rank) next += own.size();
  }
  return ranks;
}

Shape among_node(const Shape& shape, std::int64_t words) {
  Shape among;
  among.kind = Kind::neighbor_allgather;
  among.rank = shape.rank;
  among.size = shape.size;
  for (const int rank : shape.nodes->ranks(node_of(shape)))
    if (rank != shape.rank) among.sources.push_back(rank);
  among.destinations = among.sources;
  among.send.count = among.recv.count = words * static_cast<std::int64_t>(sizeof(std::int64_t));
  return among;
}

}  // namespace weft
