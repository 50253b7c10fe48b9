// The numbers of messages, bytes and rounds of each algorithm are those of its paper.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "log2_up.h"
#include "patterns/blocks.h"
#include "patterns/doubling.h"
#include "patterns/tree.h"
#include "select/selector.h"
#include "simulated_call.h"

namespace weft::test {
namespace {

struct Cost {
  std::int64_t sent_bytes = 0;  // by one rank
  int messages = 0;             // by one rank
  int rounds = 0;               // rounds that send or receive
  int copies = 0;
  // Bytes copied, without those that a reduction writes to a second place.
  std::int64_t copied_bytes = 0;
  std::int64_t reduced_bytes = 0;  // bytes of each operand
};

Cost cost(const Schedule& schedule) {
  Cost cost;
  std::uint32_t i = 0;
  for (std::uint32_t end : schedule.round_ends) {
    bool waits = false;
    for (; i < end; ++i) {
      const Step& step = schedule.steps[i];
      waits = waits || step.kind == StepKind::send || step.kind == StepKind::recv;
      const std::int64_t bytes = payload_bytes(schedule.shape, step.first);
      cost.copies += step.kind == StepKind::copy ? 1 : 0;
      const bool passes = step.kind == StepKind::copy && step.fused == Fused::no;
      cost.copied_bytes += passes ? bytes : 0;
      cost.reduced_bytes += step.kind == StepKind::reduce ? bytes : 0;
      if (step.kind != StepKind::send) continue;
      ++cost.messages;
      cost.sent_bytes += bytes;
    }
    cost.rounds += waits ? 1 : 0;
  }
  return cost;
}

std::vector<Schedule> schedules(Kind kind, const char* name, int size, std::int64_t count,
                                bool in_place = false) {
  Call call{.size = size, .count = count, .in_place = in_place, .type = &test_types()[0]};
  call.algorithm = find_algorithm(kind, name);
  return build_all(call);
}

TEST(Cost, RingAllreduceSendsTheLeast) {
  for (int p : {2, 3, 5, 8}) {
    const std::int64_t count = 840;  // divisible by all numbers of ranks in the test
    for (const Schedule& s : schedules(Kind::allreduce, "ring", p, count)) {
      EXPECT_EQ(cost(s).sent_bytes, 2 * (p - 1) * count * 4 / p);
      EXPECT_EQ(cost(s).rounds, 2 * (p - 1));
      EXPECT_EQ(cost(s).copies, 0);
      EXPECT_EQ(s.temp_bytes, 0);
    }
  }
}

TEST(Cost, RabenseifnerSendsTheLeastInLogarithmicRounds) {
  for (int p : {2, 4, 8, 16}) {
    for (const Schedule& s : schedules(Kind::allreduce, "rabenseifner", p, 1024)) {
      EXPECT_EQ(cost(s).sent_bytes, 2 * (p - 1) * 1024 * 4 / p);
      EXPECT_EQ(cost(s).rounds, 2 * log2_up(p));
      EXPECT_EQ(cost(s).copies, 0);
    }
  }
}

TEST(Cost, RecursiveDoublingTakesLogarithmicRounds) {
  for (int p : {2, 4, 8, 16}) {
    for (const Schedule& s : schedules(Kind::allreduce, "recursive-doubling", p, 10)) {
      EXPECT_EQ(cost(s).rounds, log2_up(p));
      EXPECT_EQ(cost(s).sent_bytes, log2_up(p) * 40);
      EXPECT_LE(cost(s).copies, 1);
    }
  }
}

TEST(Cost, RecursiveDoublingOnTwoRanksIsOneExchange) {
  for (const Schedule& s : schedules(Kind::allreduce, "recursive-doubling", 2, 10)) {
    EXPECT_EQ(s.rounds(), 2u);  // the exchange and the reduction
    EXPECT_EQ(cost(s).rounds, 1);
    EXPECT_EQ(s.most_posted, 2u);
    EXPECT_FALSE(s.sends_after_first_round);
    EXPECT_EQ(cost(s).copies, s.shape.rank);  // rank 1 must keep its operand while the data travel
  }
}

TEST(Cost, BcastSendsEachByteToEachRankOnce) {
  for (const char* name : {"binomial", "scatter-allgather", "chain"}) {
    for (int p : {2, 3, 5, 8, 13}) {
      std::int64_t sent_bytes = 0;
      for (const Schedule& s : schedules(Kind::bcast, name, p, 1001))
        sent_bytes += cost(s).sent_bytes;
      EXPECT_EQ(sent_bytes, (p - 1) * 1001 * 4) << name << " " << p;
    }
  }
}

TEST(Cost, BcastChainIsPipelined) {
  const std::int64_t count = 4 * 65536 / 4;  // four segments
  const auto all = schedules(Kind::bcast, "chain", 5, count);
  for (const Schedule& s : all) {
    const bool is_end = s.shape.rank == 0 || s.shape.rank == 4;
    EXPECT_EQ(cost(s).rounds, is_end ? 4 : 5);
    EXPECT_EQ(cost(s).messages, s.shape.rank == 4 ? 0 : 4);
    EXPECT_EQ(cost(s).sent_bytes, s.shape.rank == 4 ? 0 : count * 4);
  }
  EXPECT_EQ(cost(schedules(Kind::bcast, "chain", 2, count)[0]).messages, 1);
}

TEST(Cost, AllgatherSendsTheLeast) {
  for (const char* name : {"ring", "recursive-doubling", "bruck"}) {
    for (const Schedule& s : schedules(Kind::allgather, name, 8, 100)) {
      EXPECT_EQ(cost(s).sent_bytes, 7 * 400) << name;
      EXPECT_EQ(cost(s).rounds, std::string(name) == "ring" ? 7 : 3) << name;
    }
  }
  EXPECT_EQ(cost(schedules(Kind::allgather, "bruck", 13, 1)[5]).rounds, 4);
}

TEST(Cost, AlltoallLinearIsOneRound) {
  for (bool in_place : {false, true}) {
    for (const Schedule& s : schedules(Kind::alltoall, "linear", 6, 10, in_place)) {
      EXPECT_EQ(cost(s).rounds, 1);
      EXPECT_EQ(cost(s).messages, 5);
      EXPECT_EQ(cost(s).sent_bytes, 5 * 40);
      EXPECT_FALSE(s.sends_after_first_round);
    }
  }
}

TEST(Cost, AlltoallPairwiseAndBruck) {
  for (const Schedule& s : schedules(Kind::alltoall, "pairwise", 6, 10)) {
    EXPECT_EQ(cost(s).rounds, 5);
    EXPECT_EQ(cost(s).sent_bytes, 5 * 40);
  }
  for (const Schedule& s : schedules(Kind::alltoall, "bruck", 8, 10)) {
    EXPECT_EQ(cost(s).rounds, 3);
    EXPECT_EQ(cost(s).sent_bytes, 3 * 4 * 40);  // half of the blocks in each round
  }
}

TEST(Cost, BarrierReduceAndScan) {
  for (const Schedule& s : schedules(Kind::barrier, "dissemination", 9, 0)) {
    EXPECT_EQ(cost(s).rounds, 4);
    EXPECT_EQ(cost(s).messages, 4);
    EXPECT_EQ(cost(s).sent_bytes, 0);
  }
  for (const char* name : {"binomial", "chain"}) {
    const Kind kind = std::string(name) == "chain" ? Kind::scan : Kind::reduce;
    int messages = 0;
    for (const Schedule& s : schedules(kind, name, 9, 5)) messages += cost(s).messages;
    EXPECT_EQ(messages, 8) << name;
  }
}

// Returns messages and bytes of all ranks together.
Cost sum_of_costs(const std::vector<Schedule>& all) {
  Cost sum;
  for (const Schedule& s : all) {
    const Cost one = cost(s);
    sum.messages += one.messages;
    sum.sent_bytes += one.sent_bytes;
    sum.rounds = std::max(sum.rounds, one.rounds);
  }
  return sum;
}

TEST(Cost, GatherAndScatter) {
  for (const Kind kind : {Kind::gather, Kind::scatter}) {
    const Cost linear = sum_of_costs(schedules(kind, "linear", 8, 10));
    EXPECT_EQ(linear.messages, 7);
    EXPECT_EQ(linear.sent_bytes, 7 * 40);
    EXPECT_EQ(linear.rounds, 1);
    const Cost binomial = sum_of_costs(schedules(kind, "binomial", 8, 10));
    EXPECT_EQ(binomial.messages, 7);
    // Leaves, pairs, and one half of the tree.
    EXPECT_EQ(binomial.sent_bytes, (4 + 2 * 2 + 4) * 40);
    const auto all = schedules(kind, "binomial", 8, 10);
    // Only its own block, since the blocks of a subtree follow each other.
    EXPECT_EQ(cost(all[0]).copies, 1);
  }
}

TEST(Cost, ReduceScatterSendsEachByteOnce) {
  for (const char* name : {"linear", "pairwise", "recursive-halving"})
    for (const Schedule& s : schedules(Kind::reduce_scatter_block, name, 8, 10)) {
      EXPECT_EQ(cost(s).sent_bytes, 7 * 40) << name;
      const int rounds = std::string(name) == "linear"     ? 1
                         : std::string(name) == "pairwise" ? 7
                                                           : 3;
      EXPECT_EQ(cost(s).rounds, rounds) << name;
    }
}

TEST(Cost, ReduceOfLongVectors) {
  const std::int64_t count = 1 << 20;
  for (const Schedule& s : schedules(Kind::reduce, "rabenseifner", 8, count)) {
    EXPECT_LE(cost(s).rounds, 6);
    EXPECT_LE(cost(s).sent_bytes, 2 * 7 * count * 4 / 8);
    // A quarter of the blocks, and a half together with it.
    EXPECT_LE(s.temp_bytes, s.shape.rank == 0 ? count : 3 * count);
  }
  const auto chain = schedules(Kind::reduce, "chain", 5, count);
  EXPECT_EQ(sum_of_costs(chain).sent_bytes, 4 * count * 4);
  EXPECT_EQ(cost(chain[4]).rounds, 32);
  EXPECT_EQ(cost(chain[0]).rounds, 32);
  EXPECT_EQ(cost(chain[2]).rounds, 34);
  EXPECT_EQ(chain[0].temp_bytes, 0);
}

TEST(Cost, ScansByRecursiveDoublingTakeLogarithmicRounds) {
  for (const Kind kind : {Kind::scan, Kind::exscan})
    for (const Schedule& s : schedules(kind, "recursive-doubling", 9, 5)) {
      EXPECT_LE(cost(s).rounds, 4);
      EXPECT_LE(cost(s).copies, 1);
    }
}

TEST(Cost, KnomialBcastHasFewerLevels) {
  const auto all = schedules(Kind::bcast, "k-nomial", 16, 5);
  EXPECT_EQ(cost(all[0]).messages, 6);
  EXPECT_EQ(sum_of_costs(all).messages, 15);
  EXPECT_EQ(cost(all[4]).messages, 3);
  EXPECT_EQ(cost(all[5]).messages, 0);
}

TEST(Cost, NeighborsWaitForNobodyAndCombinedSendOneMessageEach) {
  Call call{.size = 2, .count = 10, .type = &test_types()[0]};
  call.graph = Graph::ring;  // with two ranks both neighbours are the other rank
  for (const char* name : {"linear", "combined"}) {
    call.algorithm = find_algorithm(Kind::neighbor_alltoall, name);
    for (const Schedule& s : build_all(call)) {
      EXPECT_EQ(cost(s).messages, std::string(name) == "linear" ? 2 : 1);
      EXPECT_EQ(cost(s).sent_bytes, 80);
      EXPECT_EQ(cost(s).rounds, 1);
      EXPECT_FALSE(s.sends_after_first_round);
    }
  }
}

TEST(Cost, BySizeSendsTheLargestFirst) {
  Shape shape;
  shape.kind = Kind::neighbor_alltoallv;
  shape.size = 4;
  shape.destinations = {1, 2, 3, 1};
  for (const std::int64_t count : {10, 30, 20, 40})
    shape.send_blocks.push_back({count, 100 * count, Unit::send});
  const Schedule s = build(*find_algorithm(Kind::neighbor_alltoallv, "by-size"), shape);
  std::vector<std::int64_t> sent;
  for (const Step& step : s.steps) sent.push_back(step.first.count);
  // Messages to rank 1 keep their order.
  EXPECT_EQ(sent, (std::vector<std::int64_t>{10, 40, 30, 20}));
}

// What one rank copies, reads and reduces in the node memory, in bytes; n is the length of the
// vector or block.
struct NodeCost {
  Kind kind;
  const char* name;
  std::int64_t (*copied)(std::int64_t n, const Shape& s);
  std::int64_t (*reduced)(std::int64_t n, const Shape& s);
};

bool is_root(const Shape& s) {
  return s.rank == s.root;
}
int children(const Shape& s, int radix) {
  return static_cast<int>(knomial_children(s.rank, s.size, radix).size());
}

// Of two ranks, one acts for both. The other one only copies its vector in and the result out.
struct Doubled {
  int copied, reduced;
};
Doubled doubled(const Shape& s) {
  const Fold fold(s.size);
  const int steps = log2_up(fold.power());
  if (fold.position(s.rank) < 0) return {2, 0};
  return fold.partner(s.rank) < 0 ? Doubled{1, steps} : Doubled{1, steps + 1};
}

std::int64_t nothing(std::int64_t, const Shape&) {
  return 0;
}
std::int64_t once(std::int64_t n, const Shape&) {
  return n;
}
std::int64_t all_at_the_root(std::int64_t n, const Shape& s) {
  return is_root(s) ? s.size * n : n;
}
std::int64_t of_all_others(std::int64_t n, const Shape& s) {
  return (s.size - 1) * n;
}
std::int64_t all_but_a_share(std::int64_t n, const Shape& s) {
  return n - n / s.size;
}
// Chunks of 64 KiB are divided among the ranks in whole elements of 4 bytes.
std::int64_t a_share_of_each_part_from_others(std::int64_t n, const Shape& s) {
  constexpr std::int64_t kPart_bytes = 64 * 1024;
  std::int64_t bytes = 0;
  for (std::int64_t begin = 0; begin < n; begin += kPart_bytes)
    bytes += 4 * Blocks{std::min(kPart_bytes, n - begin) / 4, s.size}.length(s.rank);
  return (s.size - 1) * bytes;
}

const NodeCost kNodeCosts[] = {
    {Kind::bcast, "node-flat", once, nothing},
    {Kind::gather, "node-flat", all_at_the_root, nothing},
    {Kind::scatter, "node-flat", all_at_the_root, nothing},
    {Kind::allgather, "node-flat", [](auto n, auto& s) { return (s.size + 1) * n; }, nothing},
    {Kind::alltoall, "node-flat", [](auto n, auto& s) { return (2 * s.size - 1) * n; }, nothing},
    {Kind::reduce, "node-flat", [](auto n, auto& s) { return is_root(s) ? 0 : n; },
     [](auto n, auto& s) { return is_root(s) ? (s.size - 1) * n : 0; }},
    {Kind::reduce, "node-ring", [](auto n, auto& s) { return is_root(s) ? n : n / s.size; },
     all_but_a_share},
    {Kind::allreduce, "node-flat", once, of_all_others},
    {Kind::allreduce, "node-ring", once, all_but_a_share},
    {Kind::allreduce, "node-tree", [](auto n, auto& s) { return children(s, 4) ? n : 2 * n; },
     [](auto n, auto& s) { return children(s, 4) * n; }},
    {Kind::allreduce, "node-doubling", [](auto n, auto& s) { return doubled(s).copied * n; },
     [](auto n, auto& s) { return doubled(s).reduced * n; }},
    {Kind::allreduce, "node-in-order", [](auto n, auto&) { return 2 * n; },
     a_share_of_each_part_from_others},
    {Kind::allreduce, "node-direct", [](auto n, auto& s) { return (s.size - 2) * n / s.size; },
     all_but_a_share},
    {Kind::reduce, "node-direct", nothing, all_but_a_share},
    {Kind::reduce_scatter_block, "node-direct", nothing, of_all_others},
    {Kind::bcast, "node-direct", [](auto n, auto& s) { return is_root(s) ? 0 : n; }, nothing},
    {Kind::gather, "node-direct", [](auto n, auto& s) { return is_root(s) ? s.size * n : 0; },
     nothing},
    {Kind::scatter, "node-direct", once, nothing},
    {Kind::allgather, "node-direct", [](auto n, auto& s) { return s.size * n; }, nothing},
    {Kind::alltoall, "node-direct", [](auto n, auto& s) { return s.size * n; }, nothing},
    {Kind::reduce_scatter_block, "node-flat", of_all_others, of_all_others},
    {Kind::reduce_scatter_block, "node-ring", once, of_all_others},
    {Kind::scan, "node-flat",
     [](auto n, auto& s) { return (s.rank < s.size - 1 ? n : 0) + (s.rank == 0 ? n : 0); },
     [](auto n, auto& s) { return s.rank * n; }},
    {Kind::exscan, "node-flat",
     [](auto n, auto& s) { return (s.rank < s.size - 1 ? n : 0) + (s.rank == 1 ? n : 0); },
     [](auto n, auto& s) { return std::max(s.rank - 1, 0) * n; }},
    {Kind::scan, "node-chain",
     [](auto n, auto& s) { return (s.rank < s.size - 1 ? n : 0) + (s.rank == 0 ? n : 0); },
     [](auto n, auto& s) { return s.rank > 0 ? n : 0; }},
    {Kind::exscan, "node-chain", [](auto n, auto&) { return n; },
     [](auto n, auto& s) { return s.rank > 0 && s.rank < s.size - 1 ? n : 0; }},
};

TEST(Cost, BytesMovedInTheNodesMemory) {
  for (const NodeCost& expected : kNodeCosts)
    for (int p : {2, 3, 5, 8})
      // Divisible by all numbers of ranks in the test; one chunk, and many.
      for (const std::int64_t count : {840, 84'000}) {
        for (const Schedule& s : schedules(expected.kind, expected.name, p, count)) {
          const std::string call = std::string(kind_name(expected.kind)) + " " + expected.name;
          EXPECT_EQ(cost(s).copied_bytes, expected.copied(4 * count, s.shape)) << call << " " << p;
          EXPECT_EQ(cost(s).reduced_bytes, expected.reduced(4 * count, s.shape))
              << call << " " << p;
          EXPECT_EQ(cost(s).messages, 0) << call;
        }
      }
}

// Both ranks of a pair copy each byte of their blocks; a rank's block for itself is copied once.
// The blocks of an alltoallw may be packed before.
TEST(Cost, BytesMovedWhereOnlyTwoRanksKnowABlock) {
  for (const Kind kind : {Kind::gatherv, Kind::scatterv, Kind::alltoallv})
    for (const int p : {2, 3, 5, 13})
      for (const std::int64_t count : {840, 84'000}) {
        std::int64_t copied = 0, all = 0, own = 0;
        for (const Schedule& s : schedules(kind, "node-flat", p, count)) {
          copied += cost(s).copied_bytes;
          EXPECT_EQ(cost(s).messages, 0) << kind_name(kind);
          const Shape& shape = s.shape;
          for (int peer = 0; peer < p; ++peer) {
            const bool takes = kind == Kind::gatherv ? is_root(shape)
                                                     : kind != Kind::scatterv || peer == shape.root;
            const std::int64_t bytes = takes ? payload_bytes(shape, incoming(shape, peer)) : 0;
            all += bytes;
            if (peer == shape.rank) own += bytes;
          }
        }
        EXPECT_GT(all, 0);
        EXPECT_EQ(copied, 2 * all - own) << kind_name(kind) << " " << p;
      }
}

// Collectives with irregular blocks are built by the functions of the regular form, or are in the
// previous test.
TEST(Cost, IsKnownOfEachAlgorithmInTheNodesMemory) {
  for (const Algorithm& algorithm : algorithms()) {
    const bool in_one_level = needs_node(algorithm.needs) && !needs_domains(algorithm.needs);
    if (!in_one_level || algorithm.kind == Kind::barrier) continue;
    if (algorithm.build == find_algorithm(Kind::alltoallv, "node-flat")->build) continue;
    const bool known =
        std::any_of(std::begin(kNodeCosts), std::end(kNodeCosts), [&](const NodeCost& cost) {
          return find_algorithm(cost.kind, cost.name)->build == algorithm.build;
        });
    EXPECT_TRUE(known) << kind_name(algorithm.kind) << " " << algorithm.name;
  }
}

// Returns a long call: each rank's share of the node memory has its own pages behind the slots.
Call domain_call(Kind kind, const char* name, int size, Placing placing, std::int64_t count) {
  Call call{.size = size, .count = count, .type = &test_types()[0], .placing = placing};
  call.algorithm = find_algorithm(kind, name);
  return call;
}

// Checks that no rank writes to memory of another domain's ranks. Returns how many bytes are read
// across domains.
std::int64_t read_across(const Schedule& schedule, const std::string& text) {
  const Domains& domains = *schedule.shape.domains;
  const std::int64_t lines =
      most_node_bytes(schedule.shape.size) - schedule.shape.size * kNodeBytesPerRank;
  const auto is_beyond = [&](const Location& at) {
    if (at.buffer != Buffer::node) return false;
    EXPECT_GE(at.offset, lines) << text;
    const auto owner = static_cast<int>((at.offset - lines) / kNodeBytesPerRank);
    return domains.of(owner) != domains.of(schedule.shape.rank);
  };
  std::int64_t bytes = 0;
  for (const Step& step : schedule.steps) {
    if (!is_local(step.kind)) continue;
    if (is_beyond(step.first.at)) bytes += payload_bytes(schedule.shape, step.first);
    if (step.kind == StepKind::reduce && is_beyond(step.second.at))
      bytes += payload_bytes(schedule.shape, step.second);
    EXPECT_FALSE(is_beyond(result_of(step).at)) << text;
  }
  return bytes;
}

// The cost with d domains if vectors of n bytes, or p blocks, are reduced or distributed to all
// ranks.
struct DomainCost {
  Kind kind;
  const char* name;
  std::int64_t (*across)(std::int64_t n, int d, int p);
};

constexpr DomainCost kDomainCosts[] = {
    {Kind::bcast, "domain-flat", [](std::int64_t n, int d, int) { return (d - 1) * n; }},
    {Kind::reduce, "domain-ring", [](std::int64_t n, int d, int) { return (d - 1) * n; }},
    {Kind::allreduce, "domain-ring", [](std::int64_t n, int d, int) { return 2 * (d - 1) * n; }},
    {Kind::allreduce, "domain-tree", [](std::int64_t n, int d, int) { return 2 * (d - 1) * n; }},
    {Kind::reduce_scatter_block, "domain-ring",
     [](std::int64_t n, int d, int p) { return (d - 1) * p * n; }},
    {Kind::allgather, "domain-flat", [](std::int64_t n, int d, int p) { return (d - 1) * p * n; }},
};

TEST(Cost, ByDomainsTheLeastCrossesTheirBorders) {
  for (const DomainCost& expected : kDomainCosts)
    for (const int p : {3, 4, 7, 8, 12})
      for (const Placing placing : kPlacings)
        for (const std::int64_t count : {12'000, 84'000}) {
          const Call call = domain_call(expected.kind, expected.name, p, placing, count);
          const auto domains = shape_of(call, 0).domains;
          if (!domains) continue;
          std::int64_t bytes = 0;
          for (const Schedule& s : build_all(call)) bytes += read_across(s, call.text());
          EXPECT_EQ(bytes, expected.across(4 * count, domains->count(), p)) << call.text();
        }
}

TEST(Cost, IsKnownOfEachAlgorithmByDomains) {
  for (const Algorithm& algorithm : algorithms()) {
    if (!needs_domains(algorithm.needs) || algorithm.kind == Kind::barrier) continue;
    const bool known =
        std::any_of(std::begin(kDomainCosts), std::end(kDomainCosts), [&](const DomainCost& cost) {
          return find_algorithm(cost.kind, cost.name)->build == algorithm.build;
        });
    EXPECT_TRUE(known) << kind_name(algorithm.kind) << " " << algorithm.name;
  }
}

// A barrier by domains has one wait up and one down across the borders for each domain except that
// of rank 0. A flat barrier has a wait of each rank for all other domains.
TEST(Cost, ABarrierByDomainsCrossesTheirBordersTwice) {
  for (const Placing placing : {Placing::fours, Placing::cyclic_3, Placing::growing}) {
    int waits = 0;
    const auto all = build_all(domain_call(Kind::barrier, "domain-tree", 13, placing, 0));
    const Domains& domains = *all[0].shape.domains;
    for (const Schedule& s : all)
      for (const Step& step : s.steps)
        if (step.kind == StepKind::wait && domains.of(step.peer) != domains.of(s.shape.rank))
          ++waits;
    EXPECT_EQ(waits, 2 * (domains.count() - 1));
  }
}

// 8 bytes and log p steps fit into one slot for up to 128 ranks.
TEST(Cost, DoublingOfAnElementStaysInTheSlots) {
  for (const int p : {2, 3, 16, 100, 128})
    for (const Schedule& s : schedules(Kind::allreduce, "node-doubling", p, 1))
      EXPECT_EQ(s.node_bytes, p * kSlotBytes) << p;
}

// With radix r, a rank waits for r - 1 ranks at each level; a greater radix means fewer levels.
TEST(Cost, TreesHaveTheRadixThatIsAskedFor) {
  const auto waits_of_rank_0 = [](Kind kind, int radix) {
    Call call{.size = 16, .type = &test_types()[0], .tuning = {.radix = radix}};
    call.count = kind == Kind::barrier ? 0 : 1;
    call.algorithm = find_algorithm(kind, "node-tree");
    const std::vector<Step> steps = build_all(call)[0].steps;
    return std::count_if(steps.begin(), steps.end(),
                         [](const Step& step) { return step.kind == StepKind::wait; });
  };
  for (const Kind kind : {Kind::allreduce, Kind::barrier}) {
    EXPECT_EQ(waits_of_rank_0(kind, 2), 4);
    EXPECT_EQ(waits_of_rank_0(kind, 4), 6);
    EXPECT_EQ(waits_of_rank_0(kind, 8), 8);
    EXPECT_EQ(waits_of_rank_0(kind, Tuning::kAll), 15);
  }
}

// If only two ranks know a block's length, they must still tell each other that it is 0.
TEST(Cost, NothingIsSentForNoElements) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.kind == Kind::barrier) continue;
    const bool tells = !has_known_blocks(algorithm.kind) && needs_node(algorithm.needs);
    for (const Schedule& s : schedules(algorithm.kind, algorithm.name, 4, 0)) {
      const bool moves = std::any_of(s.steps.begin(), s.steps.end(),
                                     [](const Step& step) { return !is_node(step.kind); });
      EXPECT_FALSE(tells ? moves : !s.steps.empty())
          << kind_name(algorithm.kind) << " " << algorithm.name;
    }
  }
}

}  // namespace
}  // namespace weft::test
