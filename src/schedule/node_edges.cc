// Compares both ends of each message of a neighborhood collective by a hash of its two ranks, its
// number among the messages between these, and its bytes.
#include "schedule/node_edges.h"

#include <initializer_list>
#include <map>
#include <numeric>

#include "schedule/schedule.h"

namespace weft {
namespace {

std::int64_t hash_of(std::initializer_list<std::int64_t> words) {
  std::uint64_t hash = 0;
  for (const std::int64_t word : words) {
    hash = (hash ^ static_cast<std::uint64_t>(word + 1)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return static_cast<std::int64_t>(hash >> 32);
}

}  // namespace

std::optional<std::int64_t> bytes_of_all(const Shape& shape) {
  return shape.edges ? shape.edges->all_bytes : agreed_bytes(shape);
}

void tell_edges(std::vector<Shape>& all_ranks) {
  const Nodes& nodes = *all_ranks.front().nodes;
  std::vector<NodeEdges> told(static_cast<std::size_t>(nodes.count()));
  NodeEdges sums;
  bool fit = true;
  for (int node = 0; node < nodes.count(); ++node) {
    NodeEdges& edges = told[static_cast<std::size_t>(node)];
    for (const int rank : nodes.ranks(node)) {
      edges.ranks.push_back(edges_of(all_ranks[static_cast<std::size_t>(rank)]));
      sums.all_bytes += edges.ranks.back().bytes_out();
      sums.all_edges += static_cast<std::int64_t>(edges.ranks.back().out.size());
    }
    fit = fit && fits_memory(edges);
  }
  for (Shape& shape : all_ranks) {
    NodeEdges& edges = told[static_cast<std::size_t>(nodes.of(shape.rank))];
    edges.all_bytes = sums.all_bytes;
    edges.all_edges = sums.all_edges;
    if (fit) shape.edges = std::make_shared<const NodeEdges>(edges);
  }
}

std::int64_t NodeEdges::OfRank::bytes_out() const {
  std::int64_t bytes = 0;
  for (const Edge& edge : out) bytes += edge.bytes;
  return bytes;
}

namespace {

// Returns all ranks in their order, with -1 in the place of this one.
std::vector<int> all_others(const Shape& shape) {
  std::vector<int> peers(static_cast<std::size_t>(shape.size));
  std::iota(peers.begin(), peers.end(), 0);
  peers[static_cast<std::size_t>(shape.rank)] = -1;
  return peers;
}

// Returns the ranks to which this one gives a block, in the order of the blocks.
std::vector<int> destinations_of(const Shape& shape) {
  const bool is_root = shape.rank == shape.root;
  if (shape.kind == Kind::gatherv) return is_root ? std::vector<int>{} : std::vector{shape.root};
  if (shape.kind == Kind::scatterv && !is_root) return {};
  return is_neighborhood(shape.kind) ? shape.destinations : all_others(shape);
}

// Returns the ranks from which this one takes a block, in the order of the blocks.
std::vector<int> sources_of(const Shape& shape) {
  const bool is_root = shape.rank == shape.root;
  if (shape.kind == Kind::scatterv) return is_root ? std::vector<int>{} : std::vector{shape.root};
  if (shape.kind == Kind::gatherv && !is_root) return {};
  return is_neighborhood(shape.kind) ? shape.sources : all_others(shape);
}

}  // namespace

NodeEdges::OfRank edges_of(const Shape& shape) {
  NodeEdges::OfRank own;
  const auto add = [&](std::vector<Edge>& edges, int peer, const Operand& block) {
    edges.push_back({peer, peer < 0 ? 0 : payload_bytes(shape, block)});
  };
  int block = 0;
  for (const int peer : destinations_of(shape)) add(own.out, peer, outgoing(shape, block++));
  block = 0;
  for (const int peer : sources_of(shape)) add(own.in, peer, incoming(shape, block++));
  return own;
}

bool fits_memory(const NodeEdges& edges) {
  std::int64_t bytes = 0;
  for (const NodeEdges::OfRank& rank : edges.ranks)
    for (const auto* side : {&rank.out, &rank.in})
      for (const Edge& edge : *side) bytes += edge.bytes + kLineBytes;
  return bytes <= static_cast<std::int64_t>(edges.ranks.size()) * kNodeBytesPerRank;
}

std::int64_t disagreement(const Shape& shape, const NodeEdges::OfRank& own) {
  std::int64_t sum = 0;
  std::map<int, std::int64_t> sent, received;  // number of messages so far, by peer
  for (const Edge& edge : own.out)
    if (edge.peer >= 0) sum += hash_of({shape.rank, edge.peer, sent[edge.peer]++, edge.bytes});
  for (const Edge& edge : own.in)
    if (edge.peer >= 0) sum -= hash_of({edge.peer, shape.rank, received[edge.peer]++, edge.bytes});
  return sum;
}

}  // namespace weft
