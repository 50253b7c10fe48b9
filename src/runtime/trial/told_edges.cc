// Each rank of a node sends the list of its edges in a neighbourhood collective (the ranks to which
// it gives data, and how much) to the other ranks of the node. All lists are sent with the length
// of the longest list of any rank. Between nodes only two sums are exchanged, to find out whether
// all nodes agree.
#include "runtime/trial/told_edges.h"

#include <utility>
#include <vector>

#include "coll/algorithm_names.h"
#include "library/handles.h"
#include "runtime/trial/edge_lists.h"

namespace weft {
namespace {

// The largest number of words in a list; the data of more edges would not fit into shared memory.
constexpr std::int64_t kMostWords = 2 + 2 * (kNodeBytesPerRank / kLineBytes);

// Returns the length of the longest list of edges of any rank, in words. words: the length of this
// rank's list. Returns nullopt if ranks make different calls.
std::optional<std::int64_t> greatest_list(InternalCollective& internal_collective,
                                          const Shape& shape, std::int64_t words) {
  const auto kind = static_cast<std::int64_t>(shape.kind);
  const auto all = internal_collective.greatest({kind, -kind, words});
  if (!all || (*all)[0] != kind || (*all)[1] != -kind) return std::nullopt;
  return (*all)[2];
}

// Exchanges the lists of edges of a neighbourhood collective between the ranks of a node. words:
// the length to which all lists are filled up. Returns the edges of all ranks, by node rank;
// nullopt if a message has failed.
std::optional<std::vector<NodeEdges::OfRank>> exchanged(InternalCollective& internal_collective,
                                                        const Shape& shape, EdgeList own,
                                                        std::int64_t words) {
  own.resize(static_cast<std::size_t>(words));
  const Shape among = among_node(shape, words);
  EdgeList others(own.size() * among.sources.size());
  Call call;
  call.kind = among.kind;
  call.sendbuf = own.data();
  call.recvbuf = others.data();
  call.sendtype = call.recvtype = handles.byte;
  const Algorithm& linear = *algorithm_names::kLinear.of(among.kind);
  if (!internal_collective.carry_out(build(linear, among), call, nullptr)) return std::nullopt;
  return edges_in(shape, own, others);
}

}  // namespace

std::optional<std::int64_t> longest_part(InternalCollective& internal_collective,
                                         const Shape& shape) {
  const std::int64_t kind = static_cast<std::int64_t>(shape.kind), root = shape.root;
  const auto all = internal_collective.greatest({kind, -kind, root, -root, local_bytes(shape)});
  const bool is_one_call =
      all && (*all)[0] == kind && (*all)[1] == -kind && (*all)[2] == root && (*all)[3] == -root;
  if (!is_one_call) return std::nullopt;
  const auto sums = internal_collective.sum({disagreement(shape, edges_of(shape))});
  if (!sums || (*sums)[0] != 0) return std::nullopt;
  return (*all)[4];
}

std::shared_ptr<const NodeEdges> told_edges(InternalCollective& internal_collective,
                                            const Shape& shape) {
  const NodeEdges::OfRank own = edges_of(shape);
  const EdgeList list = listed(own);
  const auto words =
      greatest_list(internal_collective, shape, static_cast<std::int64_t>(list.size()));
  if (!words || *words > kMostWords) return nullptr;
  auto of_node = exchanged(internal_collective, shape, list, *words);
  auto edges = std::make_shared<NodeEdges>();
  if (of_node) edges->ranks = std::move(*of_node);
  const bool is_right = of_node && fits_memory(*edges);
  const auto sums =
      internal_collective.sum({disagreement(shape, own), is_right ? 0 : 1, own.bytes_out(),
                               static_cast<std::int64_t>(own.out.size())});
  if (!sums || (*sums)[0] != 0 || (*sums)[1] != 0) return nullptr;
  edges->all_bytes = (*sums)[2];
  edges->all_edges = (*sums)[3];
  return edges;
}

}  // namespace weft
