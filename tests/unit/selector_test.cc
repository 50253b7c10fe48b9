// The static rule and the default algorithms; and that the choice depends only on facts that are
// the same on all ranks.
#include "select/selector.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

Shape shape_of(Kind kind, int size, std::int64_t bytes) {
  Shape shape;
  shape.kind = kind;
  shape.size = size;
  shape.recv.count = shape.send.count = bytes;
  return shape;
}

constexpr std::int64_t kMiB = 1 << 20;

TEST(StaticRule, ReplaysShortOnesInTheNodesMemory) {
  for (const auto library : {Library::mpich, Library::openmpi, Library::intelmpi, Library::other}) {
    Shape shape = shape_of(Kind::allreduce, 4, 8);
    shape.on_one_node = true;
    EXPECT_EQ(static_rule(library, shape, true), Engine::function);
    shape.recv.count = 1 << 20;
    shape.send = shape.recv;
    EXPECT_EQ(static_rule(library, shape, true), Engine::thread);
  }
}

std::shared_ptr<const Nodes> four_nodes() {
  return std::make_shared<const Nodes>(std::vector{0, 0, 1, 1, 2, 2, 3, 3});
}

TEST(Default, LongerChunksWhereNodesCannotDiffer) {
  Shape shape = shape_of(Kind::allreduce, 2, kMiB);
  EXPECT_EQ(default_tuning(shape, Processor::amd), Tuning{});
  shape.on_one_node = true;
  EXPECT_EQ(default_tuning(shape, Processor::other), Tuning{});
  EXPECT_EQ(default_tuning(shape, Processor::amd), (Tuning{.chunk_bytes = kNodeBytesPerRank / 2}));
  shape.recv.count = shape.send.count = Tuning{}.chunk_bytes;  // too short to be cut into chunks
  EXPECT_EQ(default_tuning(shape, Processor::amd), Tuning{});
}

TEST(Default, ByLevelsOnSeveralNodes) {
  for (const Kind kind : {Kind::barrier, Kind::bcast, Kind::reduce, Kind::allreduce})
    for (const std::int64_t bytes : {8L, 64 * 1024L, kMiB}) {
      Shape shape = shape_of(kind, 8, bytes);
      shape.nodes = four_nodes();
      EXPECT_STREQ(default_algorithm(shape).name, "hierarchical") << kind_name(kind);
      EXPECT_EQ(&replayed_algorithm(shape), &default_algorithm(shape));
    }
}

TEST(Default, FlatWhereLevelsSaveNothing) {
  const auto is_hierarchical = [](Shape shape) {
    shape.nodes = four_nodes();
    return default_algorithm(shape).needs == Needs::nodes;
  };
  for (const Kind kind : {Kind::allgather, Kind::reduce_scatter_block}) {
    EXPECT_FALSE(is_hierarchical(shape_of(kind, 8, 8)));
    EXPECT_TRUE(is_hierarchical(shape_of(kind, 8, kMiB)));
  }
  EXPECT_TRUE(is_hierarchical(shape_of(Kind::alltoall, 8, 8)));
  EXPECT_FALSE(is_hierarchical(shape_of(Kind::alltoall, 8, kMiB)));
  EXPECT_FALSE(is_hierarchical(shape_of(Kind::scan, 8, 8)));
}

// A node must send as much in a round as in any other algorithm with so many rounds.
TEST(Default, AReduceScatterByLevelsHasARoundPerNode) {
  const auto is_hierarchical = [](int nodes, std::int64_t bytes) {
    std::vector<int> node_of;
    for (int rank = 0; rank < 4 * nodes; ++rank) node_of.push_back(rank / 4);
    Shape shape = shape_of(Kind::reduce_scatter_block, 4 * nodes, bytes / (4 * nodes));
    shape.nodes = std::make_shared<const Nodes>(node_of);
    return default_algorithm(shape).needs == Needs::nodes;
  };
  EXPECT_FALSE(is_hierarchical(2, 64 * 1024));
  EXPECT_TRUE(is_hierarchical(2, 128 * 1024));
  EXPECT_TRUE(is_hierarchical(8, 128 * 1024));
  EXPECT_FALSE(is_hierarchical(64, 128 * 1024));
  EXPECT_TRUE(is_hierarchical(64, 256 * 1024));
}

TEST(Default, FlatWhereALevelWouldMixUpTheOrder) {
  Shape shape = shape_of(Kind::allreduce, 8, 8);
  shape.commutative = false;
  shape.nodes = four_nodes();
  EXPECT_STREQ(default_algorithm(shape).name, "hierarchical");
  shape.nodes = std::make_shared<const Nodes>(std::vector{0, 1, 0, 1, 0, 1, 0, 1});
  EXPECT_STREQ(default_algorithm(shape).name, "recursive-doubling");
  shape.commutative = true;
  EXPECT_STREQ(default_algorithm(shape).name, "hierarchical");
  shape.recv.plain = false;
  EXPECT_STREQ(default_algorithm(shape).name, "recursive-doubling");
}

TEST(Direct, IsTriedWhereItMayPayAndIsNeverTheOnlyOne) {
  Shape shape = shape_of(Kind::allreduce, 4, kMiB);
  EXPECT_EQ(direct_algorithm(shape), nullptr);
  shape.on_one_node = true;
  ASSERT_NE(direct_algorithm(shape), nullptr);
  EXPECT_STREQ(direct_algorithm(shape)->name, "node-direct");
  Config config;
  config.algorithm[static_cast<std::size_t>(Kind::allreduce)] = "node-direct";
  EXPECT_EQ(choose(config, Library::mpich, Engine::function, shape).algorithm,
            &default_algorithm(shape));
  shape.commutative = false;
  EXPECT_NE(direct_algorithm(shape), nullptr);
  shape.recv.plain = false;
  EXPECT_EQ(direct_algorithm(shape), nullptr);
  shape = shape_of(Kind::allreduce, 4, kLeastDirect_bytes - 1);
  shape.on_one_node = true;
  EXPECT_EQ(direct_algorithm(shape), nullptr);
}

TEST(Level, IsKeptByAutoInsideOneNode) {
  Config config;
  EXPECT_TRUE(keeps_level(config, true, false));
  EXPECT_FALSE(keeps_level(config, false, false));
  EXPECT_FALSE(keeps_level(config, true, true));
  config.blocking = Config::Blocking::always;
  EXPECT_FALSE(keeps_level(config, true, false));
  config.blocking = Config::Blocking::by_rule;
  for (const auto engine : {Engine::native, Engine::function, Engine::thread, Engine::tcc}) {
    config.engine = engine;
    EXPECT_FALSE(keeps_level(config, true, false));
  }
}

TEST(Requests, NeedNoLibraryWhereKernelsReduceAndCallersPack) {
  EXPECT_TRUE(needs_no_library(Kind::barrier, false));
  EXPECT_TRUE(needs_no_library(Kind::scan, true));
  EXPECT_FALSE(needs_no_library(Kind::scan, false));
  for (const Kind kind :
       {Kind::bcast, Kind::gather, Kind::gatherv, Kind::scatter, Kind::scatterv, Kind::allgather,
        Kind::allgatherv, Kind::alltoall, Kind::alltoallv, Kind::alltoallw})
    EXPECT_TRUE(needs_no_library(kind, false));
  for (const Kind kind : {Kind::neighbor_allgather, Kind::neighbor_alltoallw})
    EXPECT_FALSE(needs_no_library(kind, false));
}

TEST(Requests, InMemoryWhereTheLibraryWasSlower) {
  const auto wins = [](Library library, Kind kind, std::int64_t bytes) {
    return wins_as_request(library, shape_of(kind, 2, bytes), false);
  };
  constexpr std::int64_t kShort = 4 * 1024;
  for (const std::int64_t bytes : {8L, kShort, 64 * 1024L, kMiB}) {
    for (const Kind kind : {Kind::allreduce, Kind::reduce, Kind::scan, Kind::bcast, Kind::gather,
                            Kind::scatter, Kind::allgather, Kind::alltoall}) {
      EXPECT_TRUE(wins(Library::mpich, kind, bytes));
      EXPECT_TRUE(wins(Library::openmpi, kind, bytes));
      EXPECT_EQ(wins(Library::intelmpi, kind, bytes), reduces(kind) || bytes <= kShort);
      EXPECT_FALSE(wins(Library::other, kind, bytes));
    }
  }
  for (const Library library : {Library::mpich, Library::openmpi, Library::intelmpi}) {
    EXPECT_TRUE(wins(library, Kind::barrier, 0));
    EXPECT_FALSE(wins(library, Kind::neighbor_allgather, 8));
    // The lengths of these calls are unknown to most ranks.
    for (const Kind kind : {Kind::gatherv, Kind::scatterv, Kind::alltoallv, Kind::alltoallw})
      EXPECT_EQ(wins(library, kind, 8), library != Library::intelmpi);
  }
}

TEST(Requests, WhoMerelySendsGoesOnInTheLibraryWhereRanksShareCores) {
  for (const Library library : {Library::mpich, Library::openmpi, Library::intelmpi}) {
    const auto wins = [&](Kind kind, std::int64_t bytes) {
      return wins_as_request(library, shape_of(kind, 4, bytes), true);
    };
    for (const Kind kind : {Kind::bcast, Kind::gather, Kind::scatter, Kind::reduce})
      EXPECT_EQ(wins(kind, 8), library == Library::mpich);
    for (const Kind kind : {Kind::allreduce, Kind::allgather, Kind::alltoall, Kind::barrier})
      EXPECT_TRUE(wins(kind, 8));
    EXPECT_TRUE(wins(Kind::reduce, kMiB));
    EXPECT_EQ(wins(Kind::bcast, kMiB), library != Library::intelmpi);
  }
}

TEST(StaticRule, BelowTheThreadTheLibraryOrACheaperCall) {
  for (const auto library : {Library::openmpi, Library::intelmpi, Library::other})
    EXPECT_EQ(static_rule(library, shape_of(Kind::allreduce, 4, 1024)), Engine::native);
  EXPECT_EQ(static_rule(Library::mpich, shape_of(Kind::allreduce, 4, 1024)), Engine::function);
  EXPECT_EQ(static_rule(Library::mpich, shape_of(Kind::barrier, 4, 0)), Engine::function);
  EXPECT_EQ(static_rule(Library::mpich, shape_of(Kind::allreduce, 4, 8 * 1024)), Engine::native);
}

TEST(StaticRule, ReplayedCallsAreCheapForCallers) {
  const auto rule = [](Library library, std::int64_t bytes) {
    return static_rule(library, shape_of(Kind::allreduce, 4, bytes), true);
  };
  for (const std::int64_t bytes : {8L, 1024L, 4 * 1024L, 8 * 1024L, 64 * 1024L, 128 * 1024L - 1}) {
    EXPECT_EQ(rule(Library::mpich, bytes), Engine::function);
    EXPECT_EQ(rule(Library::intelmpi, bytes), Engine::function);
    EXPECT_EQ(rule(Library::openmpi, bytes), bytes < 8 * 1024 ? Engine::native : Engine::function);
    EXPECT_EQ(rule(Library::other, bytes), Engine::native);
  }
  for (const auto library : {Library::mpich, Library::openmpi, Library::intelmpi, Library::other})
    EXPECT_EQ(rule(library, 128 * 1024), Engine::thread);
}

TEST(StaticRule, LargeAllreduceGetsAThreadEverywhere) {
  for (const auto library : {Library::mpich, Library::openmpi, Library::intelmpi, Library::other})
    EXPECT_EQ(static_rule(library, shape_of(Kind::allreduce, 4, 2 * kMiB)), Engine::thread);
}

TEST(StaticRule, WhatGoesOnAloneStaysNative) {
  EXPECT_EQ(static_rule(Library::intelmpi, shape_of(Kind::alltoall, 2, 2 * kMiB)), Engine::native);
  EXPECT_EQ(static_rule(Library::mpich, shape_of(Kind::alltoall, 2, 2 * kMiB)), Engine::native);
  EXPECT_EQ(static_rule(Library::mpich, shape_of(Kind::alltoall, 4, 2 * kMiB)), Engine::thread);
  EXPECT_EQ(static_rule(Library::openmpi, shape_of(Kind::alltoall, 2, 2 * kMiB)), Engine::thread);
  EXPECT_EQ(static_rule(Library::mpich, shape_of(Kind::bcast, 2, 2 * kMiB)), Engine::thread);
}

TEST(StaticRule, CallsOfWhichNoRankKnowsTheWholeGetAThread) {
  for (const Kind kind : {Kind::gatherv, Kind::scatterv, Kind::alltoallv, Kind::alltoallw,
                          Kind::neighbor_allgather, Kind::neighbor_alltoallw})
    for (const std::int64_t bytes : {1L, 3 * kMiB})
      EXPECT_EQ(static_rule(Library::mpich, shape_of(kind, 4, bytes)), Engine::thread);
  // All ranks know that the call moves 4 times 40 KiB.
  EXPECT_EQ(static_rule(Library::mpich, shape_of(Kind::gather, 4, 40 * 1024)), Engine::thread);
  EXPECT_EQ(static_rule(Library::mpich, shape_of(Kind::gather, 4, 20 * 1024)), Engine::native);
}

TEST(DefaultAlgorithm, AlwaysAppliesToTheShape) {
  for (int kind = 0; kind < kKinds; ++kind)
    for (int size = 1; size <= 40; ++size)
      for (const std::int64_t bytes : {1L, 100L, 5000L, 70000L, 3 * kMiB})
        for (const bool commutative : {true, false}) {
          Shape shape = shape_of(static_cast<Kind>(kind), size, bytes);
          shape.commutative = commutative;
          const Algorithm& algorithm = default_algorithm(shape);
          EXPECT_TRUE(applies(algorithm, shape)) << algorithm.name << " at " << size << " ranks";
        }
}

// By domains, long data and many ranks go in two levels. With one domain, or hardly more than a
// rank in each, nothing changes.
TEST(DefaultAlgorithm, IsByDomainsWhereTheirBordersCost) {
  const auto name = [](Kind kind, int size, std::int64_t bytes, int per_domain) {
    Shape shape = shape_of(kind, size, bytes);
    shape.on_one_node = true;
    std::vector<int> domains;
    for (int rank = 0; rank < size; ++rank) domains.push_back(rank / per_domain);
    if (per_domain < size) shape.domains = std::make_shared<const Domains>(domains);
    return std::string(default_algorithm(shape).name);
  };
  EXPECT_EQ(name(Kind::allreduce, 64, kMiB, 64), "node-ring");
  EXPECT_EQ(name(Kind::allreduce, 64, kMiB, 32), "domain-ring");
  EXPECT_EQ(name(Kind::allreduce, 4, kMiB, 2), "domain-ring");
  EXPECT_EQ(name(Kind::allreduce, 4, kMiB, 1), "node-ring");
  EXPECT_EQ(name(Kind::allreduce, 64, 8, 64), "node-flat");
  EXPECT_EQ(name(Kind::allreduce, 64, 8, 32), "domain-tree");
  EXPECT_EQ(name(Kind::allreduce, 16, 8, 8), "node-flat");
  EXPECT_EQ(name(Kind::allreduce, 64, 8 * 1024, 32), "domain-tree");
  EXPECT_EQ(name(Kind::reduce, 64, kMiB, 32), "domain-ring");
  EXPECT_EQ(name(Kind::reduce, 64, 8, 32), "node-flat");
  EXPECT_EQ(name(Kind::bcast, 64, kMiB, 32), "domain-flat");
  EXPECT_EQ(name(Kind::bcast, 64, 8, 32), "node-flat");
  EXPECT_EQ(name(Kind::allgather, 64, kMiB, 32), "domain-flat");
  EXPECT_EQ(name(Kind::barrier, 16, 0, 8), "node-flat");
  EXPECT_EQ(name(Kind::barrier, 64, 0, 32), "domain-tree");
  EXPECT_EQ(name(Kind::barrier, 64, 0, 64), "node-flat");
}

TEST(DefaultAlgorithm, ByDomainsAppliesToTheShape) {
  for (int kind = 0; kind < kKinds; ++kind)
    for (const int size : {2, 3, 8, 40})
      for (const std::int64_t bytes : {1L, 5000L, 3 * kMiB})
        for (const bool commutative : {true, false}) {
          Shape shape = shape_of(static_cast<Kind>(kind), size, bytes);
          shape.on_one_node = true;
          shape.commutative = commutative;
          std::vector<int> domains;
          for (int rank = 0; rank < size; ++rank) domains.push_back(rank % 2);
          shape.domains = std::make_shared<const Domains>(domains);
          const Algorithm& algorithm = default_algorithm(shape);
          EXPECT_TRUE(applies(algorithm, shape)) << algorithm.name << " at " << size << " ranks";
        }
}

TEST(DefaultAlgorithm, LargeAllreduceSendsNoMoreThanNeeded) {
  EXPECT_STREQ(default_algorithm(shape_of(Kind::allreduce, 2, 2 * kMiB)).name,
               "recursive-doubling");
  EXPECT_STREQ(default_algorithm(shape_of(Kind::allreduce, 4, kMiB)).name, "rabenseifner");
  EXPECT_STREQ(default_algorithm(shape_of(Kind::allreduce, 5, kMiB)).name, "ring");
}

// Unless a round carries enough bytes, there are only as many rounds as a tree has levels.
TEST(DefaultAlgorithm, ManyRanksTakeFewRoundsForShortBlocks) {
  for (const Kind kind : {Kind::bcast, Kind::gather, Kind::scatter, Kind::allgather, Kind::reduce,
                          Kind::allreduce, Kind::reduce_scatter_block, Kind::scan, Kind::exscan})
    for (const int size : {24, 100, 256, 1000})
      for (const std::int64_t bytes : {8L, 1024L, 90 * 1024L}) {
        const bool is_one_block = kind == Kind::gather || kind == Kind::scatter ||
                                  kind == Kind::allgather || kind == Kind::reduce_scatter_block;
        if (is_one_block && bytes >= 4 * 1024) continue;
        const Shape shape = shape_of(kind, size, bytes);
        const Schedule schedule = build(default_algorithm(shape), shape);
        int levels = 0;  // levels of a tree
        while (1 << levels < size) ++levels;
        EXPECT_LE(schedule.rounds(), static_cast<std::uint32_t>(6 * levels + 6))
            << kind_name(kind) << ' ' << bytes << " bytes, " << size << " ranks";
      }
  EXPECT_STREQ(default_algorithm(shape_of(Kind::allgather, 1000, 8 * 1024)).name, "ring");
  EXPECT_STREQ(default_algorithm(shape_of(Kind::allgather, 16, 8 * 1024)).name, "ring");
}

TEST(Choose, NoRankComesToAnotherAnswer) {
  Config config;
  for (int kind = 0; kind < kKinds; ++kind) {
    const Shape first = shape_of(static_cast<Kind>(kind), 6, kMiB);
    const Choice expected = choose(config, Library::openmpi, Engine::thread, first);
    for (int rank = 1; rank < 6; ++rank) {
      Shape shape = first;
      shape.rank = rank;
      // Describes the same signature by one element of a large type instead of many small ones.
      const bool may_differ = shape.kind == Kind::bcast || shape.kind == Kind::alltoall ||
                              shape.kind == Kind::allgather;
      if (may_differ) shape.recv = {1, kMiB, 2 * kMiB, -8, 2 * kMiB, false};
      const Choice choice = choose(config, Library::openmpi, Engine::thread, shape);
      EXPECT_EQ(choice.engine, expected.engine);
      EXPECT_EQ(choice.algorithm, expected.algorithm) << kind_name(shape.kind);
    }
  }
}

TEST(Choose, TakesTheAlgorithmAskedForWhereItApplies) {
  Config config;
  config.algorithm[static_cast<std::size_t>(Kind::allreduce)] = "ring";
  Shape shape = shape_of(Kind::allreduce, 4, 64);
  EXPECT_STREQ(choose(config, Library::mpich, Engine::function, shape).algorithm->name, "ring");
  shape.commutative = false;
  EXPECT_STREQ(choose(config, Library::mpich, Engine::function, shape).algorithm->name,
               "recursive-doubling");
}

TEST(Choose, AHintComesBeforeTheConfiguration) {
  Config config;
  config.algorithm[static_cast<std::size_t>(Kind::allreduce)] = "ring";
  const Shape shape = shape_of(Kind::allreduce, 6, 64);
  const auto chosen = [&](const std::string& hint) {
    return std::string(
        choose(config, Library::mpich, Engine::thread, shape, false, &hint).algorithm->name);
  };
  EXPECT_EQ(chosen("rabenseifner"), "rabenseifner");
  EXPECT_EQ(chosen("telepathy"), "ring");
  EXPECT_EQ(chosen(""), "ring");
}

TEST(Choose, NeighborhoodsAreNeverLeftToTheLibraryAsAWhole) {
  Shape shape = shape_of(Kind::neighbor_alltoall, 4, kMiB);
  for (const Engine asked : {Engine::tcc, Engine::assist, Engine::thread, Engine::automatic}) {
    const Choice choice = choose({}, Library::openmpi, asked, shape);
    EXPECT_EQ(choice.engine, Engine::thread);
    ASSERT_NE(choice.algorithm, nullptr);
    EXPECT_STREQ(choice.algorithm->name, "linear");
  }
  EXPECT_EQ(choose({}, Library::openmpi, Engine::function, shape).engine, Engine::function);
}

TEST(Choose, LibraryEnginesNeedNoAlgorithm) {
  const Shape shape = shape_of(Kind::allreduce, 4, kMiB);
  EXPECT_EQ(choose({}, Library::mpich, Engine::tcc, shape).algorithm, nullptr);
  EXPECT_EQ(choose({}, Library::mpich, Engine::assist, shape).algorithm, nullptr);
}

TEST(Choose, TheWorkerOfTccCarriesOutANamedAlgorithm) {
  const Shape shape = shape_of(Kind::allreduce, 4, kMiB);
  const std::string hint = "ring";
  const Choice hinted = choose({}, Library::mpich, Engine::tcc, shape, false, &hint);
  EXPECT_EQ(hinted.engine, Engine::tcc);
  ASSERT_NE(hinted.algorithm, nullptr);
  EXPECT_STREQ(hinted.algorithm->name, "ring");
  Config config;
  config.algorithm[static_cast<std::size_t>(Kind::allreduce)] = "ring";
  EXPECT_NE(choose(config, Library::mpich, Engine::tcc, shape).algorithm, nullptr);
  EXPECT_EQ(choose(config, Library::mpich, Engine::assist, shape).algorithm, nullptr);
}

TEST(CheckAlgorithms, NamesTheChoices) {
  Config config;
  EXPECT_TRUE(check_algorithms(config));
  config.algorithm[static_cast<std::size_t>(Kind::bcast)] = "telepathy";
  const auto checked = check_algorithms(config);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("binomial, k-nomial, scatter-allgather"),
            std::string::npos);
}

TEST(Settled, IsWhatIsNamedOrToBeReproducible) {
  Config config;
  Shape shape = shape_of(Kind::allreduce, 4, kMiB);
  shape.on_one_node = true;
  const std::string ring = "node-ring", unknown = "pigeon";
  EXPECT_EQ(why_settled(config, shape, nullptr), nullptr);
  EXPECT_EQ(why_settled(config, shape, &unknown), nullptr);
  EXPECT_STREQ(why_settled(config, shape, &ring), "the algorithm is named");
  config.algorithm[static_cast<std::size_t>(Kind::allreduce)] = "ring";
  EXPECT_STREQ(why_settled(config, shape, nullptr), "the algorithm is named");
  EXPECT_EQ(why_settled(config, shape_of(Kind::bcast, 4, kMiB), nullptr), nullptr);
  config.reproducible = true;
  EXPECT_STREQ(why_settled(config, shape, nullptr), "it is to be reproducible");
  EXPECT_EQ(why_settled(config, shape_of(Kind::bcast, 4, kMiB), nullptr), nullptr);
}

}  // namespace
}  // namespace weft
