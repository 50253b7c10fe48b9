// The numbers of messages and bytes that algorithms by levels send between and within nodes are
// those of their papers.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coll/algorithm_names.h"
#include "log2_up.h"
#include "select/selector.h"
#include "simulated_call.h"

namespace weft::test {
namespace {

// The messages of all ranks between nodes, their bytes, and the messages within nodes.
struct Traffic {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
  std::int64_t messages_inside = 0;
};

Traffic traffic(const std::vector<Schedule>& all, const Nodes& nodes) {
  Traffic sum;
  for (const Schedule& s : all)
    for (const Step& step : s.steps) {
      if (step.kind != StepKind::send) continue;
      const bool inside = nodes.of(s.shape.rank) == nodes.of(step.peer);
      sum.messages += inside ? 0 : 1;
      sum.bytes += inside ? 0 : payload_bytes(s.shape, step.first);
      sum.messages_inside += inside ? 1 : 0;
    }
  return sum;
}

Call hierarchical_call(Kind kind, int size, Placing placing, std::int64_t count,
                       const char* name = "hierarchical") {
  Call call{.size = size, .count = count, .type = &test_types()[0], .placing = placing};
  call.algorithm = find_algorithm(kind, name);
  return call;
}

Traffic hierarchical_traffic(Kind kind, int size, Placing placing, std::int64_t count,
                             const char* name = "hierarchical") {
  const auto all = build_all(hierarchical_call(kind, size, placing, count, name));
  const Traffic sum = traffic(all, *all[0].shape.nodes);
  EXPECT_EQ(sum.messages_inside, 0) << kind_name(kind);
  return sum;
}

const Algorithm* first_algorithm(Kind kind) {
  return &*std::find_if(algorithms().begin(), algorithms().end(),
                        [&](const Algorithm& algorithm) { return algorithm.kind == kind; });
}

// Nodes of equal and of different size, with ranks in order of the nodes or not.
struct Map {
  Placing placing;
  int ranks;
};
constexpr Map kMaps[] = {{Placing::pairs, 4},    {Placing::pairs, 8},    {Placing::threes, 4},
                         {Placing::threes, 6},   {Placing::fours, 16},   {Placing::cyclic_2, 6},
                         {Placing::cyclic_3, 7}, {Placing::growing, 15}, {Placing::crowded, 9},
                         {Placing::sockets, 8},  {Placing::sockets, 11}};

Nodes nodes_of(const Map& map) {
  return Nodes(node_of_rank(map.placing, map.ranks), domain_of_rank(map.placing, map.ranks));
}

TEST(Cost, HierarchicalBcastAndReduceSendTheDataToEachNodeOnce) {
  for (const Map& map : kMaps)
    for (const std::int64_t count : {10, 100'000})
      for (const Kind kind : {Kind::bcast, Kind::reduce}) {
        const Traffic sum = hierarchical_traffic(kind, map.ranks, map.placing, count);
        EXPECT_EQ(sum.bytes, (nodes_of(map).count() - 1) * count * 4);
        if (count != 10) continue;
        EXPECT_EQ(sum.messages, nodes_of(map).count() - 1);
      }
}

TEST(Cost, HierarchicalAllreduceOfLongVectorsSendsTheLeast) {
  constexpr std::int64_t kCount = 3 * 5 * 7 * 4096;
  for (const Map& map : kMaps) {
    const Traffic sum = hierarchical_traffic(Kind::allreduce, map.ranks, map.placing, kCount);
    EXPECT_EQ(sum.bytes, 2 * (nodes_of(map).count() - 1) * kCount * 4);
  }
}

TEST(Cost, HierarchicalInOrderSendsAVectorOverEachBorderOnceInEachDirection) {
  for (const Map& map : kMaps)
    for (const std::int64_t count : {10, 100'000}) {
      if (!nodes_of(map).are_in_order()) continue;
      const std::int64_t one_way = (nodes_of(map).count() - 1) * count * 4;
      const auto bytes = [&](Kind kind) {
        return hierarchical_traffic(kind, map.ranks, map.placing, count, "hierarchical-in-order")
            .bytes;
      };
      EXPECT_EQ(bytes(Kind::allreduce), 2 * one_way);
      EXPECT_EQ(bytes(Kind::reduce), one_way);  // the root is on the first node
    }
}

TEST(Cost, HierarchicalAllreduceOfShortVectorsIsByDoubling) {
  const Traffic two = hierarchical_traffic(Kind::allreduce, 6, Placing::threes, 10);
  EXPECT_EQ(two.messages, 2);
  EXPECT_EQ(two.bytes, 2 * 40);
  const Traffic four = hierarchical_traffic(Kind::allreduce, 16, Placing::fours, 10);
  EXPECT_EQ(four.messages, 4 * 2);
  const Traffic three = hierarchical_traffic(Kind::allreduce, 6, Placing::pairs, 10);
  EXPECT_EQ(three.messages, 1 + 2 + 1);  // three nodes are folded to two
}

TEST(Cost, HierarchicalAllgatherSendsEachBlockToEachNodeOnce) {
  for (const Map& map : kMaps)
    for (const std::int64_t count : {10, 40'000}) {
      const Traffic sum = hierarchical_traffic(Kind::allgather, map.ranks, map.placing, count);
      EXPECT_EQ(sum.bytes, (nodes_of(map).count() - 1) * map.ranks * count * 4);
    }
}

TEST(Cost, HierarchicalAllgathervsAndReduceScattersSendEachBlockToOrFromEachNodeOnce) {
  for (const Map& map : kMaps)
    for (const std::int64_t count : {10, 40'000})
      for (const Kind kind : {Kind::allgatherv, Kind::reduce_scatter, Kind::reduce_scatter_block}) {
        const Traffic sum = hierarchical_traffic(kind, map.ranks, map.placing, count);
        const Shape shape = shape_of(hierarchical_call(kind, map.ranks, map.placing, count), 0);
        EXPECT_EQ(sum.bytes, (nodes_of(map).count() - 1) * *agreed_bytes(shape)) << kind_name(kind);
      }
}

TEST(Cost, HierarchicalAlltoallSendsOneMessageFromNodeToNode) {
  for (const Map& map : kMaps)
    for (const std::int64_t count : {10, 10'000}) {
      const Nodes nodes = nodes_of(map);
      std::int64_t blocks = 0;
      for (int rank = 0; rank < map.ranks; ++rank)
        blocks += map.ranks - nodes.ranks_on(nodes.of(rank));
      const Traffic sum = hierarchical_traffic(Kind::alltoall, map.ranks, map.placing, count);
      EXPECT_EQ(sum.bytes, blocks * count * 4);
      if (count != 10) continue;
      EXPECT_EQ(sum.messages, nodes.count() * (nodes.count() - 1));
    }
}

int rounds_with_messages(const Schedule& s) {
  int rounds = 0;
  std::uint32_t begin = 0;
  for (const std::uint32_t end : s.round_ends) {
    rounds += std::any_of(s.steps.begin() + begin, s.steps.begin() + end,
                          [](const Step& step) { return is_posted(step.kind); })
                  ? 1
                  : 0;
    begin = end;
  }
  return rounds;
}

// The leader has messages with all other nodes at once, but with 32 of them at most.
TEST(Cost, OneLeaderExchangesBlocksWithManyNodesAtOnce) {
  for (const auto& [nodes, rounds] : {std::pair(8, 1), std::pair(33, 1), std::pair(34, 2)}) {
    const auto all = build_all(hierarchical_call(Kind::alltoall, 2 * nodes, Placing::pairs, 10,
                                                 "hierarchical-one-leader"));
    EXPECT_EQ(rounds_with_messages(all[0]), rounds) << nodes;
  }
}

// Short blocks of a node form one message, whichever rank is the root.
TEST(Cost, GathersAndScattersWithOneLeaderSendEachBlockOnce) {
  for (const Map& map : kMaps)
    for (const Kind kind : {Kind::gather, Kind::scatter})
      for (const std::int64_t count : {10, 40'000})
        for (int root = 0; root < map.ranks; ++root) {
          Call call =
              hierarchical_call(kind, map.ranks, map.placing, count, "hierarchical-one-leader");
          call.root = root;
          const Nodes nodes = nodes_of(map);
          const Traffic sum = traffic(build_all(call), nodes);
          EXPECT_EQ(sum.bytes, (map.ranks - nodes.ranks_on(nodes.of(root))) * count * 4);
          EXPECT_EQ(sum.messages_inside, 0) << call.text();
          if (count != 10) continue;
          EXPECT_EQ(sum.messages, nodes.count() - 1) << call.text();
        }
}

TEST(Cost, ScansWithOneLeaderSendAVectorFromNodeToNode) {
  for (const Map& map : kMaps)
    for (const Kind kind : {Kind::scan, Kind::exscan})
      for (const std::int64_t count : {10, 100'000}) {
        if (!nodes_of(map).are_in_order()) continue;
        const Traffic sum =
            hierarchical_traffic(kind, map.ranks, map.placing, count, "hierarchical-one-leader");
        EXPECT_EQ(sum.bytes, (nodes_of(map).count() - 1) * count * 4);
        if (count != 10) continue;
        EXPECT_EQ(sum.messages, nodes_of(map).count() - 1);
      }
}

TEST(Cost, HierarchicalBarrierSendsFromLeadersOnly) {
  for (const Map& map : kMaps) {
    const int nodes = nodes_of(map).count();
    EXPECT_EQ(hierarchical_traffic(Kind::barrier, map.ranks, map.placing, 0).messages,
              nodes * log2_up(nodes));
  }
}

bool gives_one_block(Kind kind) {
  return kind == Kind::neighbor_allgather || kind == Kind::neighbor_allgatherv;
}

// What a neighbourhood must send between nodes: the pairs of nodes, the pairs of a rank and a node,
// and the bytes. A block for several neighbours on one node counts once.
struct Crossing {
  std::set<std::pair<int, int>> from_node, from_rank;
  std::int64_t bytes = 0;
};

Crossing crossing(const std::vector<Shape>& shapes) {
  Crossing sum;
  const Nodes& nodes = *shapes[0].nodes;
  for (const Shape& shape : shapes)
    for (int i = 0; i < static_cast<int>(shape.destinations.size()); ++i) {
      const int to = shape.destinations[static_cast<std::size_t>(i)];
      const std::int64_t bytes = payload_bytes(shape, outgoing(shape, i));
      if (to < 0 || bytes == 0 || nodes.of(to) == nodes.of(shape.rank)) continue;
      sum.from_node.insert({nodes.of(shape.rank), nodes.of(to)});
      const bool is_new = sum.from_rank.insert({shape.rank, nodes.of(to)}).second;
      if (is_new || !gives_one_block(shape.kind)) sum.bytes += bytes;
    }
  return sum;
}

TEST(Cost, JoinedNeighborsSendOneMessageFromNodeToNode) {
  for (const Map& map : kMaps)
    for (const Graph graph : {Graph::grid, Graph::random})
      for (const Algorithm& algorithm : algorithms()) {
        if (algorithm.needs != Needs::nodes_edges) continue;
        Call call = hierarchical_call(algorithm.kind, map.ranks, map.placing, 10, algorithm.name);
        call.graph = graph;
        const std::vector<Schedule> all = build_all(call);
        const Traffic sent = traffic(all, *all[0].shape.nodes);
        const Crossing least = crossing(shapes_of(call));
        const bool whole_nodes = std::string(algorithm.name) == "joined";
        const auto messages = whole_nodes ? least.from_node.size() : least.from_rank.size();
        EXPECT_EQ(sent.messages, static_cast<std::int64_t>(messages)) << call.text();
        EXPECT_EQ(sent.bytes, least.bytes) << call.text();
        EXPECT_EQ(sent.messages_inside, 0) << call.text();
      }
}

// The ranks of a node share its messages to other nodes.
TEST(Cost, JoinedNeighborsHaveALeaderForEachOtherNode) {
  Call call = hierarchical_call(Kind::neighbor_alltoall, 9, Placing::threes, 10, "joined");
  call.graph = Graph::ring;
  for (const Schedule& s : build_all(call))
    EXPECT_LE(std::count_if(s.steps.begin(), s.steps.end(),
                            [](const Step& step) { return step.kind == StepKind::send; }),
              1);
}

// The other ranks' schedules are compiled for the node's memory, so that an agent can execute them,
// whichever rank is the root. The bytes between nodes are not more than with several leaders. Where
// no algorithm has several, they are not more than by the first of those that send from rank to
// rank.
TEST(Cost, WithOneLeaderOnlyTheFirstRankOfANodeSends) {
  int seen = 0;
  for (const Map& map : kMaps)
    for (const Algorithm& algorithm : algorithms())
      for (const std::int64_t count : {10, 30'000})
        for (int root = 0; root < map.ranks; ++root) {
          if (!has_one_leader(algorithm) || (root > 0 && !has_root(algorithm.kind))) continue;
          Call call =
              hierarchical_call(algorithm.kind, map.ranks, map.placing, count, algorithm.name);
          call.root = root;
          if (!applies(algorithm, shape_of(call, 0))) continue;
          const std::vector<Schedule> all = build_all(call);
          const Nodes& nodes = *all[0].shape.nodes;
          for (const Schedule& s : all)
            EXPECT_EQ(s.program.empty(), nodes.local_rank(s.shape.rank) == 0) << call.text();
          call.algorithm = find_algorithm(algorithm.kind, "hierarchical");
          if (!call.algorithm) call.algorithm = first_algorithm(algorithm.kind);
          EXPECT_LE(traffic(all, nodes).bytes, traffic(build_all(call), nodes).bytes)
              << call.text();
          ++seen;
        }
  EXPECT_GT(seen, 100);
}

// One chunk travels between the nodes while the next one is summed within the node.
TEST(Cost, HierarchicalReductionsArePipelined) {
  for (const Kind kind : {Kind::reduce, Kind::allreduce}) {
    const auto all = build_all(hierarchical_call(kind, 4, Placing::pairs, 16 * 32'768));
    const Schedule& s = all[0];
    int rounds_with_both = 0;
    std::uint32_t i = 0;
    for (std::uint32_t end : s.round_ends) {
      bool posts = false, reduces = false;
      for (; i < end; ++i) {
        const StepKind step = s.steps[i].kind;
        posts = posts || step == StepKind::send || step == StepKind::recv;
        reduces = reduces || (posts && step == StepKind::reduce);
      }
      rounds_with_both += reduces ? 1 : 0;
    }
    EXPECT_GE(rounds_with_both, 7) << kind_name(kind);
  }
}

// The hierarchical algorithm is the default only if it sends no more bytes between nodes than the
// default without nodes, and no more messages if these are short.
TEST(Cost, HierarchicalIsTakenWhereItSavesTraffic) {
  int taken = 0;
  for (const Map& map : kMaps)
    for (const std::int64_t count : {1, 300, 3'000, 30'000, 300'000})
      for (const Algorithm& algorithm : algorithms()) {
        if (!needs_nodes(algorithm.needs) || is_neighborhood(algorithm.kind)) continue;
        Call call =
            hierarchical_call(algorithm.kind, map.ranks, map.placing, count, algorithm.name);
        Shape shape = shape_of(call, 0);
        if (&default_algorithm(shape) != &algorithm) continue;
        ++taken;
        const auto nodes = shape.nodes;
        const Traffic with = traffic(build_all(call), *nodes);
        const std::string text = call.text();
        shape.nodes = nullptr;
        call.algorithm = &default_algorithm(shape);
        const Traffic without = traffic(build_all(call), *nodes);
        EXPECT_LE(with.bytes, without.bytes) << text << " or " << call.algorithm->name;
        if (count > 300) continue;
        EXPECT_LE(with.messages, without.messages) << text << " or " << call.algorithm->name;
      }
  EXPECT_GT(taken, 100);
}

// The sum of each block passes from rank to rank along the ring of its node. The link behind the
// leader is not used; of the other links, those across domains are counted.
TEST(Cost, HierarchicalSumsGoFromDomainToDomainOnce) {
  const auto all = build_all(hierarchical_call(Kind::allreduce, 8, Placing::sockets, 4 * 16'000));
  const std::vector<int> domains = domain_of_rank(Placing::sockets, 8);
  int across = 0, sums = 0;
  for (const Schedule& s : all)
    for (std::size_t i = 1; i < s.steps.size(); ++i) {
      const Step& wait = s.steps[i - 1];
      if (s.steps[i].kind != StepKind::reduce || wait.kind != StepKind::wait) continue;
      const auto domain = [&](int rank) { return domains[static_cast<std::size_t>(rank)]; };
      ++sums;
      across += domain(wait.peer) != domain(s.shape.rank) ? 1 : 0;
    }
  EXPECT_EQ(sums, 2 * 4 * 3);
  EXPECT_EQ(across, 2 * (1 + 2 + 1 + 2));
}

}  // namespace
}  // namespace weft::test
