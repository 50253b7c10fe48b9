// Tests every algorithm of the table against the oracle: 1 to 17 ranks (9 under sanitizers), every
// root, counts from none to many, blocks of different sizes in any order with gaps between them,
// neighbours that occur several times, types with holes, operators that do not commute, in place or
// not.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "coll/algorithm_names.h"
#include "simulated_call.h"

namespace weft::test {
namespace {

// Long blocks are tested with few ranks only, which suffice. Sanitizers take ten times as long, so
// they get fewer ranks.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kMostRanks = 9, kMostRanksWithMany = 5;
#else
constexpr int kMostRanks = 17, kMostRanksWithMany = 8;
#endif

// Returns whether a count of such a collective is that of a whole vector, not of a block per rank.
bool is_of_whole_vectors(Kind kind) {
  return kind == Kind::bcast || kind == Kind::reduce || kind == Kind::allreduce ||
         kind == Kind::scan || kind == Kind::exscan;
}

// Returns whether some rank's data has holes, so that a direct schedule ends at once.
bool cannot_be_seen(const Call& call) {
  if (!is_direct(*call.algorithm)) return false;
  for (int rank = 0; rank < call.size; ++rank) {
    const Shape shape = shape_of(call, rank);
    if (!shape.send.plain || !shape.recv.plain) return true;
  }
  return false;
}

class AlgorithmTest : public testing::TestWithParam<const Algorithm*> {
 protected:
  void check_variants(Call call) {
    call.algorithm = GetParam();
    const bool one_is_enough = !needs_nodes(call.algorithm->needs) || call.root > 0;
    const std::size_t placings = one_is_enough ? 1 : std::size(kPlacings);
    // Each call distributes the ranks over nodes or domains in another way.
    const auto first = static_cast<std::size_t>(
        needs_domains(call.algorithm->needs) ? call.root + call.size + call.count : call.root);
    for (std::size_t i = 0; i < placings && !HasFatalFailure(); ++i) {
      call.placing = kPlacings[(i + first) % std::size(kPlacings)];
      check_operators(call);
    }
  }

  void check_operators(Call call) {
    const Kind kind = call.algorithm->kind;
    for (Op op : {Op::sum, Op::max, Op::affine}) {
      if (op != Op::sum && !reduces(kind)) break;
      for (bool in_place : {false, true}) {
        if (in_place && !has_in_place(kind)) break;
        call.op = op;
        call.in_place = in_place;
        if (!applies(*call.algorithm, shape_of(call, 0)) || cannot_be_seen(call)) continue;
        ++checked_;
        const std::string failure = check(call).failure;
        ASSERT_EQ(failure, "") << call.text();
      }
    }
  }

  void check_graphs(Call call) {
    for (const Graph graph : {Graph::grid, Graph::ring, Graph::random}) {
      call.graph = graph;
      check_variants(call);
      if (HasFatalFailure() || !is_neighborhood(GetParam()->kind)) return;
    }
  }

  void check_roots(Call call) {
    const int roots = has_root(GetParam()->kind) ? call.size : 1;
    for (call.root = 0; call.root < roots; ++call.root) {
      check_graphs(call);
      if (HasFatalFailure()) return;
    }
  }

  int checked_ = 0;
};

TEST_P(AlgorithmTest, EqualsTheOracle) {
  for (int size = 1; size <= kMostRanks; ++size) {
    for (const TestType& type : test_types()) {
      for (std::int64_t count : {0, 1, 7, size > kMostRanksWithMany ? 40 : 1000}) {
        check_roots({.size = size, .count = count, .type = &type});
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(checked_, 0);
}

// These counts need several segments, or messages sent one by one.
TEST_P(AlgorithmTest, EqualsTheOracleWithLongData) {
  for (int size : {2, 3, 5}) {
    check_roots({.size = size, .count = 17'003, .type = &test_types()[3]});
    if (HasFatalFailure()) return;
  }
  check_roots({.size = 8, .count = 6'011, .type = &test_types()[2]});
}

// These counts are so long that all of a node's memory is used again and again.
TEST_P(AlgorithmTest, EqualsTheOracleWhereTheNodesMemoryIsReused) {
  if (!needs_memory(GetParam()->needs)) return;
  for (int size : {2, 3, 5}) {
    check_roots({.size = size, .count = 70'001, .type = &test_types()[1]});
    if (HasFatalFailure()) return;
  }
  if (!needs_nodes(GetParam()->needs)) return;
  // Several nodes have equally many ranks. A count may be that of a block for each rank.
  const bool is_whole = is_of_whole_vectors(GetParam()->kind);
  for (int size : {4, 6, 8}) {
    const std::int64_t count = is_whole ? 20'001 * size : 20'001;
    check_roots({.size = size, .count = count, .type = &test_types()[0]});
    if (HasFatalFailure()) return;
  }
}

// Shorter chunks use all of the node's memory again more often.
TEST_P(AlgorithmTest, EqualsTheOracleInChunksOfOtherSizes) {
  if (!needs_node(GetParam()->needs)) return;
  for (const std::int64_t chunk_bytes : {128L, 16L * 1024, kNodeBytesPerRank / 2}) {
    for (int size : {2, 5}) {
      const std::int64_t count = chunk_bytes < 1024 ? 301 : 40'001;
      check_roots({.size = size,
                   .count = count,
                   .type = &test_types()[1],
                   .tuning = {.chunk_bytes = chunk_bytes}});
      if (HasFatalFailure()) return;
    }
  }
}

// In algorithms by domains, the domains' first ranks meet along a tree of radix `across`.
TEST_P(AlgorithmTest, EqualsTheOracleWithTreesOfOtherRadices) {
  if (!std::string_view(GetParam()->name).ends_with("-tree")) return;
  for (const int radix : {2, 3, Tuning::kAll})
    for (const int across : {2, Tuning::kAll})
      for (const int size : {5, kMostRanks}) {
        check_roots({.size = size,
                     .count = 40,
                     .type = &test_types()[1],
                     .tuning = {.radix = radix, .radix_across = across}});
        if (HasFatalFailure()) return;
      }
}

// All of a tree must be executed, however much of it is the caller's part.
TEST_P(AlgorithmTest, EqualsTheOracleHoweverItsTreeIsSplit) {
  if (!std::string_view(GetParam()->name).ends_with("nomial")) return;
  for (const int split : {1, 2, kMostRanks})
    for (const int size : {2, 5, 8, kMostRanks}) {
      check_roots(
          {.size = size, .count = 40, .type = &test_types()[1], .tuning = {.split_levels = split}});
      check_roots({.size = size,
                   .count = 9'001,
                   .type = &test_types()[1],
                   .tuning = {.split_levels = split}});
      if (HasFatalFailure()) return;
    }
}

// Excludes reductions, in which all ranks use the same type.
class DataMovementTest : public AlgorithmTest {};

TEST_P(DataMovementTest, RanksMayDescribeTheSameDataDifferently) {
  for (int size = 2; size <= 9; ++size) {
    Call call{.size = size, .count = 514, .type = &test_types()[0]};
    call.odd_type = &test_types()[3];
    call.odd_count = 257;
    check_roots(call);
    if (HasFatalFailure()) return;
  }
}

std::string test_name(const testing::TestParamInfo<const Algorithm*>& info) {
  std::string name = std::string(kind_name(info.param->kind)) + "_" + info.param->name;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

std::vector<const Algorithm*> all_algorithms(bool with_reductions) {
  std::vector<const Algorithm*> all;
  for (const Algorithm& algorithm : algorithms()) {
    if (with_reductions || !reduces(algorithm.kind)) all.push_back(&algorithm);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, AlgorithmTest, testing::ValuesIn(all_algorithms(true)), test_name);
INSTANTIATE_TEST_SUITE_P(All, DataMovementTest, testing::ValuesIn(all_algorithms(false)),
                         test_name);

TEST(Algorithms, AreFoundByName) {
  for (const Algorithm& algorithm : algorithms())
    EXPECT_EQ(find_algorithm(algorithm.kind, algorithm.name), &algorithm);
  EXPECT_EQ(find_algorithm(Kind::bcast, "pigeon"), nullptr);
}

template <std::size_t kBytes>
struct Literal {
  consteval Literal(const char (&literal)[kBytes]) { std::ranges::copy(literal, text); }
  char text[kBytes];
};

// Is true if there is an algorithm of this name, so that a constant may have it.
template <Literal kName>
concept IsName = requires {
  typename std::bool_constant<AlgorithmName(kName.text).text() != nullptr>;
};

TEST(Algorithms, AreNamedByConstants) {
  using namespace algorithm_names;
  static_assert(IsName<"ring"> && !IsName<"rink">);
  EXPECT_EQ(kRing.of(Kind::allreduce), find_algorithm(Kind::allreduce, "ring"));
  EXPECT_EQ(kRing.of(Kind::bcast), nullptr);
  EXPECT_TRUE(kRing.names(*find_algorithm(Kind::allgather, "ring")));
  EXPECT_FALSE(kRing.names(*find_algorithm(Kind::allgather, "bruck")));
}

TEST(Algorithms, ApplyOnlyWhereTheyAreRight) {
  Shape shape;
  shape.kind = Kind::allreduce;
  shape.size = 4;
  shape.commutative = false;
  EXPECT_FALSE(applies(*find_algorithm(Kind::allreduce, "ring"), shape));
  EXPECT_TRUE(applies(*find_algorithm(Kind::allreduce, "recursive-doubling"), shape));
  shape.kind = Kind::allgather;
  shape.size = 6;
  EXPECT_FALSE(applies(*find_algorithm(Kind::allgather, "recursive-doubling"), shape));
  EXPECT_TRUE(applies(*find_algorithm(Kind::allgather, "bruck"), shape));
  EXPECT_FALSE(applies(*find_algorithm(Kind::alltoall, "bruck"), shape));
}

}  // namespace
}  // namespace weft::test
