// Which ways a site has, and how they are named.
#include "select/ways.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>

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

// The rule's way first, here the library's: others have to be learnt.
TEST(Ways, InMemoryDataMovesByTheLibraryFirst) {
  for (const Kind kind :
       {Kind::bcast, Kind::gather, Kind::scatter, Kind::allgather, Kind::alltoall}) {
    Shape shape = shape_of(kind, kLong);
    shape.on_one_node = true;
    const auto ways = ways_in_memory({}, Library::mpich, shape, {Engine::native, nullptr}, true,
                                     Processor::other);
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
        const auto ways =
            ways_in_memory({}, Library::mpich, shape, rule, spare_cores, Processor::other);
        EXPECT_EQ(way_words(ways.front()), way_words(rule));
        EXPECT_GE(native_among(ways), 0);
        EXPECT_TRUE(has(ways, way_words(by_callers)));
        EXPECT_TRUE(has(ways, std::string("thread ") + by_callers.algorithm->name));
        EXPECT_EQ(ways.size(), bytes == kLong ? 6u : 3u);
        for (const Choice& way : ways)
          EXPECT_TRUE(!way.algorithm || needs_node(way.algorithm->needs));
        if (bytes == kLong) {
          EXPECT_EQ(ways.back().engine, spare_cores ? Engine::thread : Engine::function);
        }
      }
    }
  }
}

std::vector<Choice> in_parts(const std::vector<Choice>& ways) {
  std::vector<Choice> found;
  std::copy_if(ways.begin(), ways.end(), std::back_inserter(found),
               [](const Choice& way) { return way.part_bytes != 0; });
  return found;
}

std::vector<std::vector<Choice>> all_lists(const Shape& shape, Processor processor) {
  const Choice rule = choose({}, Library::mpich, Engine::automatic, shape);
  std::vector<std::vector<Choice>> lists = {
      ways_for({}, Library::mpich, shape, rule, {.processor = processor}),
      ways_for_blocking({}, Library::mpich, shape, processor)};
  if (shape.on_one_node)
    lists.push_back(ways_in_memory({}, Library::mpich, shape, rule, true, processor));
  return lists;
}

TEST(Ways, OneOtherSizeOfPartIsTriedOfLongDataInMemory) {
  Shape one_node = shape_of(Kind::allreduce, kLong);
  one_node.on_one_node = true;
  Shape several = shape_of(Kind::allreduce, kLong);
  several.nodes = std::make_shared<const Nodes>(std::vector{0, 0, 0, 0, 1, 1, 1, 1});
  for (Shape shape : {one_node, several})
    for (const Processor processor : {Processor::amd, Processor::other}) {
      for (const auto& ways : all_lists(shape, processor)) {
        ASSERT_EQ(in_parts(ways).size(), 1u);
        const Choice way = in_parts(ways).front();
        EXPECT_NE(way.part_bytes, default_tuning(shape, processor).part_bytes);
        EXPECT_EQ(ways[static_cast<std::size_t>(*find_way(ways, way_words(way)))].part_bytes,
                  way.part_bytes);
      }
      shape.recv.count = shape.send.count = kShort;
      for (const auto& ways : all_lists(shape, processor)) EXPECT_TRUE(in_parts(ways).empty());
      shape.recv.count = shape.send.count = kLong;
    }
  for (const auto& ways : all_lists(shape_of(Kind::allreduce, kLong), Processor::other))
    EXPECT_TRUE(in_parts(ways).empty());  // by messages alone
}

TEST(Ways, PartsOfAnotherSizeMakeAnotherSchedule) {
  for (int kind = 0; kind < kKinds; ++kind)
    for (const std::int64_t bytes : {96 * 1024L, 200 * 1024L, kLong, 3 * kLong})
      for (const bool on_one_node : {false, true}) {
        Shape shape = shape_of(static_cast<Kind>(kind), bytes, 4);
        shape.on_one_node = on_one_node;
        if (!on_one_node) shape.nodes = std::make_shared<const Nodes>(std::vector{0, 1, 1, 1});
        for (const auto& ways : all_lists(shape, Processor::other))
          for (const Choice& way : in_parts(ways)) {
            // The first rank may be alone on its node.
            const Choice usual_way = {way.engine, way.algorithm};
            bool differs = false;
            for (shape.rank = 0; shape.rank < 2; ++shape.rank) {
              const auto schedule = [&](const Choice& choice) {
                return build(*way.algorithm, shape, tuning_of(choice, shape, Processor::other));
              };
              const Schedule usual = schedule(usual_way), other = schedule(way);
              differs = differs || usual.steps.size() != other.steps.size() ||
                        usual.node_bytes != other.node_bytes;
            }
            EXPECT_TRUE(differs) << way_words(way) << ' ' << kind << ' ' << bytes;
            EXPECT_NE(schedule_key(way), schedule_key(usual_way));
            shape.rank = 0;
          }
      }
}

std::string words_of_all(const Shape& shape) {
  std::string words;
  for (const auto& ways : all_lists(shape, Processor::other))
    for (const Choice& way : ways) words += way_words(way) + ", ";
  return words;
}

// Rank 0 has bytes, the others elements with holes between them.
Shape shape_at(int rank, Shape shape) {
  shape.rank = rank;
  const bool has_holes = rank > 0 && !reduces(shape.kind);
  if (has_holes) shape.recv = shape.send = {shape.recv.count / 8, 8, 24, 0, 8, false};
  if (shape.kind == Kind::allgatherv || shape.kind == Kind::reduce_scatter)
    for (int i = 0; i < shape.size; ++i)
      shape.recv_blocks.push_back(
          {shape.recv.count, i * shape.recv.count * shape.recv.extent, Unit::recv});
  if (rank == 0) return shape;
  if (shape.kind == Kind::gather) shape.recv.count = 0;
  if (shape.kind == Kind::scatter) shape.send.count = 0;
  return shape;
}

TEST(Ways, AllRanksHaveTheSame) {
  for (int kind = 0; kind < kKinds; ++kind)
    for (const std::int64_t bytes : {65 * 1024L, 96 * 1024L, 128 * 1024L, 200 * 1024L, kLong})
      for (const auto& places :
           std::vector<std::vector<int>>{{}, {0, 1, 1, 1}, {0, 0, 1, 1}, {0, 0, 0, 1}}) {
        Shape shape = shape_of(static_cast<Kind>(kind), bytes, 4);
        shape.on_one_node = places.empty();
        if (!shape.on_one_node) shape.nodes = std::make_shared<const Nodes>(places);
        for (int rank = 1; rank < shape.size; ++rank)
          EXPECT_EQ(words_of_all(shape_at(rank, shape)), words_of_all(shape_at(0, shape)))
              << kind << ' ' << bytes;
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
