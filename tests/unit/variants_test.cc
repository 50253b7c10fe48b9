// Which variants a call class has, and how they are named.
#include "select/variants.h"

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

std::vector<Choice> variants_of(const Shape& shape, const JobResources& beside) {
  const Config config;
  return variants_for(config, Library::mpich, shape,
                      choose(config, Library::mpich, Engine::automatic, shape), beside);
}

bool has(const std::vector<Choice>& variants, std::string_view words) {
  return find_variant(variants, words).has_value();
}

TEST(Variants, BeginWithTheRulesAndHaveTheLibrarys) {
  for (const std::int64_t bytes : {kShort, kLong}) {
    const Shape shape = shape_of(Kind::allreduce, bytes);
    const auto variants = variants_of(shape, {});
    const Choice rule = choose({}, Library::mpich, Engine::automatic, shape);
    EXPECT_EQ(variant_words(variants.front()), variant_words(rule));
    EXPECT_GE(native_among(variants), 0);
    EXPECT_TRUE(has(variants, "assist"));
    for (std::size_t variant = 0; variant < variants.size(); ++variant)
      EXPECT_EQ(find_variant(variants, variant_words(variants[variant])),
                static_cast<int>(variant));
  }
}

TEST(Variants, WorkersCarryOutLongOnes) {
  EXPECT_TRUE(has(variants_of(shape_of(Kind::allreduce, kLong), {}), "tcc"));
  EXPECT_FALSE(has(variants_of(shape_of(Kind::allreduce, kShort), {}), "tcc"));
  EXPECT_FALSE(has(variants_of(shape_of(Kind::neighbor_allgather, kLong), {}), "tcc"));
  const auto variants = variants_of(shape_of(Kind::bcast, kLong), {});
  EXPECT_EQ(variant_words(variants[static_cast<std::size_t>(worker_among(variants))]), "tcc");
}

// Some libraries have blocking collectives that hang where the non-blocking ones do not.
TEST(Variants, WorkersAreLeftOutWhereTheLibrarysBlockingCallsAreFaulty) {
  const auto has_worker = [](Library library, Kind kind) {
    const Shape shape = shape_of(kind, kLong);
    const Choice rule = choose({}, library, Engine::automatic, shape);
    return worker_among(variants_for({}, library, shape, rule, {})) >= 0;
  };
  EXPECT_TRUE(has_worker(Library::openmpi, Kind::allreduce));
  EXPECT_FALSE(has_worker(Library::openmpi, Kind::allgather));
  EXPECT_TRUE(has_worker(Library::mpich, Kind::allgather));
  EXPECT_FALSE(has_worker(Library::intelmpi, Kind::allreduce));
}

TEST(Variants, AgentsServeOneNode) {
  const JobResources beside{.agents = true};
  Shape shape = shape_of(Kind::allreduce, kLong);
  const auto has_agent = [&] {
    const auto variants = variants_of(shape, beside);
    return std::any_of(variants.begin(), variants.end(),
                       [](const Choice& variant) { return variant.engine == Engine::agent; });
  };
  EXPECT_FALSE(has_agent());
  shape.on_one_node = true;
  EXPECT_TRUE(has_agent());
}

TEST(Variants, AgentsServeSeveralNodesWhereOneRankOfEachSends) {
  Shape shape = shape_of(Kind::allreduce, kLong, 4);
  shape.nodes = std::make_shared<const Nodes>(std::vector<int>{0, 0, 1, 1});
  const std::string words = "agent hierarchical-one-leader";
  EXPECT_TRUE(has(variants_of(shape, {.agents = true, .agents_lead = true}), words));
  EXPECT_FALSE(has(variants_of(shape, {.agents = true}), words));
  EXPECT_FALSE(has(variants_of(shape_of(Kind::allreduce, kLong, 4), {.agents_lead = true}), words));
}

TEST(Variants, AgentsServeLongRootedBlocksAndScansOfSeveralNodes) {
  const std::string words = "agent hierarchical-one-leader";
  for (const Kind kind : {Kind::gather, Kind::scatter, Kind::scan, Kind::exscan})
    for (const std::int64_t bytes : {kShort, kWorthAThread_bytes}) {
      Shape shape = shape_of(kind, bytes, 4);
      shape.nodes = std::make_shared<const Nodes>(std::vector<int>{0, 0, 1, 1});
      EXPECT_EQ(has(variants_of(shape, {.agents_lead = true}), words), bytes != kShort)
          << kind_name(kind);
      shape.nodes = std::make_shared<const Nodes>(std::vector<int>{0, 1, 0, 1});
      EXPECT_EQ(has(variants_of(shape, {.agents_lead = true}), words),
                bytes != kShort && !reduces(kind))
          << kind_name(kind);
    }
}

// The usual variant splits at the model's number of levels, further ones a level above and below.
TEST(Variants, TreesAreSplitBesideTheModelsLevels) {
  const JobResources beside{.cores = {.ranks = 4, .free = 4}};
  const Shape shape = shape_of(Kind::bcast, kShort, 16);
  const int levels = best_split(beside.cores, shape);
  const auto variants = variants_of(shape, beside);
  EXPECT_TRUE(has(variants, "thread binomial"));
  EXPECT_EQ(has(variants, "thread binomial split " + std::to_string(levels - 1)), levels > 0);
  EXPECT_TRUE(has(variants, "thread binomial split " + std::to_string(levels + 1)));
  EXPECT_FALSE(has(variants, "thread binomial split " + std::to_string(levels)));
  for (const Choice& variant : variants_of(shape_of(Kind::alltoall, kShort, 16), beside))
    EXPECT_EQ(variant.split_levels, Config::kByModel);
  for (const Choice& variant : variants_of(shape, {}))
    EXPECT_EQ(variant.split_levels, Config::kByModel);
}

// Without this variant, the data would go by levels, which is the default here.
TEST(Variants, ShortDataMayGoByATreeInstead) {
  for (const Kind kind : {Kind::reduce, Kind::allreduce}) {
    Shape shape = shape_of(kind, kShort, 8);
    shape.nodes = std::make_shared<const Nodes>(std::vector{0, 0, 1, 1, 2, 2, 3, 3});
    const JobResources beside{.cores = {.ranks = 2, .free = 2}};
    EXPECT_TRUE(has(variants_of(shape, beside), "thread binomial"));
    EXPECT_FALSE(has(variants_of(shape, {}), "thread binomial"));
  }
}

// The rule's variant comes first, here the library's. Whether another is faster is to be learnt.
TEST(Variants, InMemoryDataMovesByTheLibraryFirst) {
  for (const Kind kind :
       {Kind::bcast, Kind::gather, Kind::scatter, Kind::allgather, Kind::alltoall}) {
    Shape shape = shape_of(kind, kLong);
    shape.on_one_node = true;
    const auto variants = variants_in_memory({}, Library::mpich, shape, {Engine::native, nullptr},
                                             true, Processor::other);
    EXPECT_EQ(native_among(variants), 0);
    EXPECT_TRUE(has(variants, "function node-flat"));
    EXPECT_TRUE(has(variants, "thread node-flat"));
  }
}

// In blocking calls, recursive doubling has half the rounds of a binomial tree up and down, so the
// tree is not tried.
TEST(Variants, AnAllreduceUpAndDownATreeIsNotTried) {
  const Shape shape = shape_of(Kind::allreduce, kLong);
  const auto variants = variants_for_blocking({}, Library::mpich, shape, Processor::other);
  EXPECT_TRUE(has(variants, "function ring"));
  EXPECT_TRUE(has(variants, "function rabenseifner"));
  EXPECT_FALSE(has(variants, "function binomial"));
}

TEST(Variants, BlockingCallsBeginWithTheRules) {
  Shape shape = shape_of(Kind::alltoallv, kShort);
  shape.on_one_node = true;
  for (const bool is_wefts : {false, true}) {
    const auto variants =
        variants_for_blocking({}, Library::mpich, shape, Processor::other, is_wefts);
    ASSERT_EQ(variants.size(), 2u);
    EXPECT_EQ(variant_words(variants[is_wefts ? 0 : 1]), "function node-flat");
    EXPECT_EQ(native_among(variants), is_wefts ? 1 : 0);
  }
}

TEST(Variants, InMemoryNeedNoMessages) {
  for (const std::int64_t bytes : {kShort, kLong}) {
    Shape shape = shape_of(Kind::allreduce, bytes);
    shape.on_one_node = true;
    for (const bool spare_cores : {false, true}) {
      const Choice by_callers = choose({}, Library::mpich, Engine::function, shape);
      for (const Choice& rule : {by_callers, Choice{}}) {
        const auto variants =
            variants_in_memory({}, Library::mpich, shape, rule, spare_cores, Processor::other);
        EXPECT_EQ(variant_words(variants.front()), variant_words(rule));
        EXPECT_GE(native_among(variants), 0);
        EXPECT_TRUE(has(variants, variant_words(by_callers)));
        EXPECT_TRUE(has(variants, std::string("thread ") + by_callers.algorithm->name));
        EXPECT_EQ(variants.size(), bytes == kLong ? 6u : 3u);
        for (const Choice& variant : variants)
          EXPECT_TRUE(!variant.algorithm || needs_node(variant.algorithm->needs));
        if (bytes == kLong) {
          EXPECT_EQ(variants.back().engine, spare_cores ? Engine::thread : Engine::function);
        }
      }
    }
  }
}

std::vector<Choice> in_chunks(const std::vector<Choice>& variants) {
  std::vector<Choice> found;
  std::copy_if(variants.begin(), variants.end(), std::back_inserter(found),
               [](const Choice& variant) { return variant.chunk_bytes != 0; });
  return found;
}

std::vector<std::vector<Choice>> all_lists(const Shape& shape, Processor processor) {
  const Choice rule = choose({}, Library::mpich, Engine::automatic, shape);
  std::vector<std::vector<Choice>> lists = {
      variants_for({}, Library::mpich, shape, rule, {.processor = processor}),
      variants_for_blocking({}, Library::mpich, shape, processor)};
  if (shape.on_one_node)
    lists.push_back(variants_in_memory({}, Library::mpich, shape, rule, true, processor));
  return lists;
}

TEST(Variants, OneOtherSizeOfPartIsTriedOfLongDataInMemory) {
  Shape one_node = shape_of(Kind::allreduce, kLong);
  one_node.on_one_node = true;
  Shape several = shape_of(Kind::allreduce, kLong);
  several.nodes = std::make_shared<const Nodes>(std::vector{0, 0, 0, 0, 1, 1, 1, 1});
  for (Shape shape : {one_node, several})
    for (const Processor processor : {Processor::amd, Processor::other}) {
      for (const auto& variants : all_lists(shape, processor)) {
        ASSERT_EQ(in_chunks(variants).size(), 1u);
        const Choice variant = in_chunks(variants).front();
        EXPECT_NE(variant.chunk_bytes, default_tuning(shape, processor).chunk_bytes);
        EXPECT_EQ(
            variants[static_cast<std::size_t>(*find_variant(variants, variant_words(variant)))]
                .chunk_bytes,
            variant.chunk_bytes);
      }
      shape.recv.count = shape.send.count = kShort;
      for (const auto& variants : all_lists(shape, processor))
        EXPECT_TRUE(in_chunks(variants).empty());
      shape.recv.count = shape.send.count = kLong;
    }
  for (const auto& variants : all_lists(shape_of(Kind::allreduce, kLong), Processor::other))
    EXPECT_TRUE(in_chunks(variants).empty());  // only algorithms in a node's memory have chunks
}

TEST(Variants, ChunksOfAnotherSizeMakeAnotherSchedule) {
  for (int kind = 0; kind < kKinds; ++kind)
    for (const std::int64_t bytes : {96 * 1024L, 200 * 1024L, kLong, 3 * kLong})
      for (const bool on_one_node : {false, true}) {
        Shape shape = shape_of(static_cast<Kind>(kind), bytes, 4);
        shape.on_one_node = on_one_node;
        if (!on_one_node) shape.nodes = std::make_shared<const Nodes>(std::vector{0, 1, 1, 1});
        for (const auto& variants : all_lists(shape, Processor::other))
          for (const Choice& variant : in_chunks(variants)) {
            // Compares two ranks, since the first one may be alone on its node.
            const Choice usual_variant = {variant.engine, variant.algorithm};
            bool differs = false;
            for (shape.rank = 0; shape.rank < 2; ++shape.rank) {
              const auto schedule = [&](const Choice& choice) {
                return build(*variant.algorithm, shape, tuning_of(choice, shape, Processor::other));
              };
              const Schedule usual = schedule(usual_variant), other = schedule(variant);
              differs = differs || usual.steps.size() != other.steps.size() ||
                        usual.node_bytes != other.node_bytes;
            }
            EXPECT_TRUE(differs) << variant_words(variant) << ' ' << kind << ' ' << bytes;
            EXPECT_NE(schedule_key(variant), schedule_key(usual_variant));
            shape.rank = 0;
          }
      }
}

std::string words_of_all(const Shape& shape) {
  std::string words;
  for (const auto& variants : all_lists(shape, Processor::other))
    for (const Choice& variant : variants) words += variant_words(variant) + ", ";
  return words;
}

// Describes the data by bytes on rank 0, and by elements with holes between them elsewhere.
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

TEST(Variants, AllRanksHaveTheSame) {
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

TEST(Variants, AreNoMoreThanALearnerTakes) {
  const JobResources beside{.agents = true, .agents_lead = true, .cores = {.ranks = 2, .free = 2}};
  for (int kind = 0; kind < kKinds; ++kind)
    for (const std::int64_t bytes : {kShort, 64 * 1024L, kLong})
      for (const bool on_one_node : {false, true}) {
        Shape shape = shape_of(static_cast<Kind>(kind), bytes);
        shape.on_one_node = on_one_node;
        EXPECT_LE(variants_of(shape, beside).size(), Learner::kMostVariants);
      }
}

}  // namespace
}  // namespace weft
