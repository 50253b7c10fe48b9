// Which ways a site has, and how they are named.
#include "select/ways.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "select/learner.h"

namespace weft {
namespace {

Shape shape_of(Kind kind, std::int64_t bytes, int size = 8) {
  Shape shape;
  shape.kind = kind;
  shape.size = size;
  shape.recv.count = shape.send.count = bytes;
  return shape;
}

constexpr std::int64_t kShort = 1024, kLong = 1 << 20;

std::vector<Choice> ways_of(const Shape& shape, const Beside& beside) {
  const Config config;
  return ways_for(config, Library::mpich, shape,
                  choose(config, Library::mpich, Engine::automatic, shape), beside);
}

bool has(const std::vector<Choice>& ways, std::string_view words) {
  return find_way(ways, words).has_value();
}

TEST(Ways, BeginWithTheRulesAndHaveTheLibrarys) {
  for (const std::int64_t bytes : {kShort, kLong}) {
    const Shape shape = shape_of(Kind::allreduce, bytes);
    const auto ways = ways_of(shape, {});
    const Choice rule = choose({}, Library::mpich, Engine::automatic, shape);
    EXPECT_EQ(way_words(ways.front()), way_words(rule));
    EXPECT_GE(native_among(ways), 0);
    EXPECT_TRUE(has(ways, "assist"));
    for (std::size_t way = 0; way < ways.size(); ++way)
      EXPECT_EQ(find_way(ways, way_words(ways[way])), static_cast<int>(way));
  }
}

TEST(Ways, WorkersCarryOutLongOnes) {
  EXPECT_TRUE(has(ways_of(shape_of(Kind::allreduce, kLong), {}), "tcc"));
  EXPECT_FALSE(has(ways_of(shape_of(Kind::allreduce, kShort), {}), "tcc"));
  EXPECT_FALSE(has(ways_of(shape_of(Kind::neighbor_allgather, kLong), {}), "tcc"));
  const auto ways = ways_of(shape_of(Kind::bcast, kLong), {});
  EXPECT_EQ(way_words(ways[static_cast<std::size_t>(worker_among(ways))]), "tcc");
}

// Their blocking calls hang where the non-blocking ones do not.
TEST(Ways, WorkersAreLeftOutWhereTheLibrarysBlockingCallsAreFaulty) {
  const auto has_worker = [](Library library, Kind kind) {
    const Shape shape = shape_of(kind, kLong);
    const Choice rule = choose({}, library, Engine::automatic, shape);
    return worker_among(ways_for({}, library, shape, rule, {})) >= 0;
  };
  EXPECT_TRUE(has_worker(Library::openmpi, Kind::allreduce));
  EXPECT_FALSE(has_worker(Library::openmpi, Kind::allgather));
  EXPECT_TRUE(has_worker(Library::mpich, Kind::allgather));
  EXPECT_FALSE(has_worker(Library::intelmpi, Kind::allreduce));
}

TEST(Ways, AgentsServeOneNode) {
  const Beside beside{.agents = true};
  Shape shape = shape_of(Kind::allreduce, kLong);
  const auto has_agent = [&] {
    const auto ways = ways_of(shape, beside);
    return std::any_of(ways.begin(), ways.end(),
                       [](const Choice& way) { return way.engine == Engine::agent; });
  };
  EXPECT_FALSE(has_agent());
  shape.on_one_node = true;
  EXPECT_TRUE(has_agent());
}

// By the model; and only trees.
TEST(Ways, TreesAreSplitBesideTheModelsLevels) {
  const Beside beside{.cores = {.ranks = 4, .free = 4}};
  const Shape shape = shape_of(Kind::bcast, kShort, 16);
  const int levels = best_split(beside.cores, shape);
  const auto ways = ways_of(shape, beside);
  EXPECT_TRUE(has(ways, "thread binomial"));
  EXPECT_EQ(has(ways, "thread binomial split " + std::to_string(levels - 1)), levels > 0);
  EXPECT_TRUE(has(ways, "thread binomial split " + std::to_string(levels + 1)));
  EXPECT_FALSE(has(ways, "thread binomial split " + std::to_string(levels)));
  for (const Choice& way : ways_of(shape_of(Kind::alltoall, kShort, 16), beside))
    EXPECT_EQ(way.split_levels, Config::kByModel);
  for (const Choice& way : ways_of(shape, {})) EXPECT_EQ(way.split_levels, Config::kByModel);
}

// Whose default goes by levels.
TEST(Ways, ShortDataMayGoByATreeInstead) {
  Shape shape = shape_of(Kind::reduce, kShort, 8);
  shape.nodes = std::make_shared<const Nodes>(std::vector{0, 0, 1, 1, 2, 2, 3, 3});
  const Beside beside{.cores = {.ranks = 2, .free = 2}};
  EXPECT_TRUE(has(ways_of(shape, beside), "thread binomial"));
  EXPECT_FALSE(has(ways_of(shape, {}), "thread binomial"));
}

// What merely moves data is the library's until another way has been learnt.
TEST(Ways, InMemoryDataMovesByTheLibraryFirst) {
  for (const Kind kind :
       {Kind::bcast, Kind::gather, Kind::scatter, Kind::allgather, Kind::alltoall}) {
    Shape shape = shape_of(kind, kLong);
    shape.on_one_node = true;
    for (const Library library : {Library::mpich, Library::openmpi, Library::intelmpi})
      EXPECT_FALSE(wins_as_request(library, shape));
    const auto ways = ways_in_memory({}, Library::mpich, shape, {Engine::native, nullptr}, true);
    EXPECT_EQ(native_among(ways), 0);
    EXPECT_TRUE(has(ways, "function node-flat"));
    EXPECT_TRUE(has(ways, "thread node-flat"));
  }
}

// Weft's thread calls no MPI there.
TEST(Ways, InMemoryNeedNoMessages) {
  for (const std::int64_t bytes : {kShort, kLong}) {
    Shape shape = shape_of(Kind::allreduce, bytes);
    shape.on_one_node = true;
    for (const bool spare_cores : {false, true}) {
      const Choice by_callers = choose({}, Library::mpich, Engine::function, shape);
      for (const Choice& rule : {by_callers, Choice{}}) {
        const auto ways = ways_in_memory({}, Library::mpich, shape, rule, spare_cores);
        EXPECT_EQ(way_words(ways.front()), way_words(rule));
        EXPECT_GE(native_among(ways), 0);
        EXPECT_TRUE(has(ways, way_words(by_callers)));
        EXPECT_TRUE(has(ways, std::string("thread ") + by_callers.algorithm->name));
        EXPECT_EQ(ways.size(), bytes == kLong ? 5u : 3u);
        for (const Choice& way : ways)
          EXPECT_TRUE(!way.algorithm || needs_node(way.algorithm->needs));
        if (bytes == kLong) {
          EXPECT_EQ(ways.back().engine, spare_cores ? Engine::thread : Engine::function);
        }
      }
    }
  }
}

TEST(Ways, AreNoMoreThanALearnerTakes) {
  const Beside beside{.agents = true, .cores = {.ranks = 2, .free = 2}};
  for (int kind = 0; kind < kKinds; ++kind)
    for (const std::int64_t bytes : {kShort, 64 * 1024L, kLong})
      for (const bool on_one_node : {false, true}) {
        Shape shape = shape_of(static_cast<Kind>(kind), bytes);
        shape.on_one_node = on_one_node;
        EXPECT_LE(ways_of(shape, beside).size(), Learner::kMostWays);
      }
}

}  // namespace
}  // namespace weft
