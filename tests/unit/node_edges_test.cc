// What the ranks of a node know about a neighbourhood: its edges, whether they fit into the node's
// memory, and whether both ends of each edge describe it alike.
#include "schedule/node_edges.h"

#include <gtest/gtest.h>

#include "call_layout.h"
#include "simulated_call.h"

namespace weft::test {
namespace {

std::vector<Shape> some_shapes(std::int64_t count = 10) {
  Call call{.size = 6, .count = count, .type = &test_types()[0], .graph = Graph::random};
  call.algorithm = find_algorithm(Kind::neighbor_alltoallv, "joined");
  return shapes_of(call);
}

std::int64_t disagreement_of_all(const std::vector<Shape>& shapes) {
  std::int64_t sum = 0;
  for (const Shape& shape : shapes) sum += disagreement(shape, edges_of(shape));
  return sum;
}

TEST(NodeEdges, AreThoseOfAllRanksOfTheNode) {
  const std::vector<Shape> shapes = some_shapes();
  std::int64_t bytes = 0, edges = 0;
  for (const Shape& shape : shapes) {
    const NodeEdges::OfRank own = edges_of(shape);
    const auto place = static_cast<std::size_t>(node_rank_of(shape, shape.rank));
    ASSERT_TRUE(shape.edges);
    ASSERT_EQ(shape.edges->ranks.size(), static_cast<std::size_t>(ranks_here(shape)));
    EXPECT_EQ(shape.edges->ranks[place].out, own.out);
    EXPECT_EQ(shape.edges->ranks[place].in, own.in);
    bytes += own.bytes_out();
    edges += static_cast<std::int64_t>(own.out.size());
  }
  EXPECT_EQ(*bytes_of_all(shapes[0]), bytes);
  EXPECT_EQ(shapes[5].edges->all_edges, edges);
}

TEST(NodeEdges, AreNotTakenIfTheyDoNotFit) {
  EXPECT_FALSE(some_shapes(1'000'000)[0].edges);
}

// A wrong count, peer or number of blocks on one rank is noticed, even if the bytes are equal.
TEST(NodeEdges, ShowThatRanksDisagree) {
  const std::vector<Shape> right = some_shapes();
  EXPECT_EQ(disagreement_of_all(right), 0);
  for (std::size_t rank = 0; rank < right.size(); ++rank) {
    std::vector<Shape> wrong = right;
    std::vector<int>& peers = wrong[rank].destinations;
    if (peers.empty()) continue;
    wrong[rank].send_blocks[0].count += 1;
    EXPECT_NE(disagreement_of_all(wrong), 0) << rank;
    wrong = right;
    wrong[rank].destinations[0] = (right[rank].destinations[0] + 1) % 6;
    EXPECT_NE(disagreement_of_all(wrong), 0) << rank;
    wrong = right;
    wrong[rank].destinations.pop_back();
    EXPECT_NE(disagreement_of_all(wrong), 0) << rank;
  }
}

// What odd ranks give has another length than at the call at which the ranks told each other.
TEST(NodeEdges, BlocksOfAnotherLengthThanWasToldArrive) {
  constexpr Kind kKindsWithEdges[] = {Kind::neighbor_allgather, Kind::neighbor_allgatherv,
                                      Kind::neighbor_alltoall, Kind::neighbor_alltoallv,
                                      Kind::neighbor_alltoallw};
  for (const Kind kind : kKindsWithEdges)
    for (const char* name : {"joined", "partly-joined"})
      for (const Graph graph : {Graph::grid, Graph::ring, Graph::random})
        for (const Placing placing : {Placing::pairs, Placing::threes, Placing::fours,
                                      Placing::cyclic_2, Placing::cyclic_3})
          for (const std::int64_t told_count : {0, 4, 30}) {
            Call call{.size = 8, .count = 10, .type = &test_types()[0], .graph = graph};
            call.algorithm = find_algorithm(kind, name);
            call.placing = placing;
            call.told_count = told_count;
            ASSERT_EQ(check(call).failure, "") << call.text() << ", told " << told_count;
          }
}

}  // namespace
}  // namespace weft::test
