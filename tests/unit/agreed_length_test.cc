// The length class of calls whose size no rank knows: the ranks agree on it in shared memory, in
// any order in which they make their calls.
#include "select/agreed_length.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <random>
#include <vector>

#include "shm/node_comparisons.h"

namespace weft {
namespace {

using Length = AgreedLength<NodeComparisons<1>>;
// Returns the length class of a rank's part of a call.
using Parts = std::function<int(int rank, int call)>;

// Returns the length class in force at each call, on each rank. Ranks make their calls in a random
// order, and are at most `drift` calls apart.
std::vector<std::vector<int>> in_force(int ranks, int calls, int drift, unsigned seed,
                                       const Parts& part) {
  std::vector<std::int64_t> memory(NodeComparisons<1>::kWords);
  const SharedWords shared(reinterpret_cast<std::byte*>(memory.data()));
  std::vector<Length> lengths(static_cast<std::size_t>(ranks),
                              Length(NodeComparisons<1>(shared, ranks)));
  std::vector<std::vector<int>> found(lengths.size());
  std::mt19937 random(seed);
  const auto least = [&] {
    return std::min_element(found.begin(), found.end(),
                            [](const auto& a, const auto& b) { return a.size() < b.size(); })
        ->size();
  };
  while (least() < static_cast<std::size_t>(calls)) {
    const auto rank = random() % lengths.size();
    const auto call = found[rank].size();
    if (call == static_cast<std::size_t>(calls) || call >= least() + static_cast<unsigned>(drift))
      continue;
    const int before = lengths[rank].in_force();
    const bool is_other = lengths[rank].next(part(static_cast<int>(rank), static_cast<int>(call)));
    EXPECT_EQ(is_other, lengths[rank].in_force() != before);
    found[rank].push_back(lengths[rank].in_force());
  }
  return found;
}

TEST(AgreedLength, ClassesBeginAtTheirLengths) {
  EXPECT_EQ(Length::class_of(0), 0);
  EXPECT_EQ(Length::class_of(8 * 1024 - 1), 0);
  EXPECT_EQ(Length::class_of(8 * 1024), 1);
  EXPECT_EQ(Length::class_of(256 * 1024 - 1), 1);
  EXPECT_EQ(Length::class_of(256 * 1024), 2);
  EXPECT_EQ(Length::class_of(std::int64_t{1} << 40), 2);
}

TEST(AgreedLength, IsEqualOnAllRanksHoweverFarTheyAreApart) {
  constexpr int kCalls = 2000;
  for (const int ranks : {2, 3, 5})
    for (const int drift : {1, 4, 200})
      for (unsigned seed = 1; seed <= 20; ++seed) {
        const auto found = in_force(ranks, kCalls, drift, seed, [&](int rank, int call) {
          return static_cast<int>((static_cast<unsigned>(call) / 97 + static_cast<unsigned>(rank)) *
                                      2654435761u >>
                                  20) %
                 3;
        });
        for (const auto& of_rank : found) ASSERT_EQ(of_rank, found.front()) << seed;
      }
}

TEST(AgreedLength, FollowsTheLongestPartOfAnyRank) {
  constexpr int kPhase = 200;
  const auto longest = [](int call) { return call / kPhase % 3; };
  const auto found = in_force(3, 9 * kPhase, 2, 1, [&](int rank, int call) {
    return rank == call / kPhase % 2 ? longest(call) : 0;
  });
  for (int call = 0; call < 9 * kPhase; ++call) {
    if (call % kPhase < static_cast<int>(Length::kNoticesAfter)) continue;
    EXPECT_EQ(found[0][static_cast<std::size_t>(call)], longest(call)) << call;
  }
}

TEST(AgreedLength, ShortCallsBetweenLongOnesAreAmongThem) {
  for (int cycle = 2; cycle <= 8; ++cycle) {
    const auto found =
        in_force(2, 1000, 2, 1, [&](int, int call) { return call % cycle == 0 ? 2 : 0; });
    for (std::size_t call = Length::kNoticesAfter; call < 1000; ++call)
      EXPECT_EQ(found[0][call], 2) << cycle;
  }
}

TEST(AgreedLength, MostShortCallsNeedNotTellTheirLength) {
  std::vector<std::int64_t> memory(NodeComparisons<1>::kWords);
  Length alone(NodeComparisons<1>(SharedWords(reinterpret_cast<std::byte*>(memory.data())), 1));
  int told = 0;
  for (int call = 0; call < 1000; ++call) {
    told += alone.needs_length();
    alone.next(0);
  }
  EXPECT_LT(told, 1000 / 7);
}

}  // namespace
}  // namespace weft
