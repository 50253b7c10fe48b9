// What is shown of a buffer in shared memory, and who finds it.
#include "shm/shared_ranges.h"

#include <gtest/gtest.h>

#include <array>

#include "shm/habits.h"

namespace weft {
namespace {

std::array<std::byte, 100> memory;

constexpr std::int64_t kNotShared = ShownBuffer::kNotShared;

TEST(SharedRanges, ABufferIsShownByNumberAndOffset) {
  SharedRanges ranges;
  const std::vector<int> all{0, 1, 5};
  ranges.add({7, memory.data() + 10, 20, all});
  const ShownBuffer shown = ranges.shown(memory.data() + 12, 18, all);
  EXPECT_EQ(shown.memory, 7);
  EXPECT_EQ(shown.offset, 2);
  EXPECT_EQ(ranges.find(shown), memory.data() + 12);
  EXPECT_EQ(ranges.shown(memory.data() + 9, 5, all).memory, kNotShared);
  EXPECT_EQ(ranges.shown(memory.data() + 12, 19, all).memory, kNotShared);
  EXPECT_FALSE(ranges.find({8, 0}));
}

// A window of some ranks only is nothing to a collective of more.
TEST(SharedRanges, OnlyToRanksThatAllHaveTheRange) {
  SharedRanges ranges;
  ranges.add({7, memory.data(), 50, {1, 3, 5}});
  EXPECT_EQ(ranges.shown(memory.data(), 8, std::vector{1, 5}).memory, 7);
  EXPECT_EQ(ranges.shown(memory.data(), 8, std::vector{1, 2, 5}).memory, kNotShared);
  EXPECT_EQ(ranges.shown(memory.data(), 8, std::vector{0, 1}).memory, kNotShared);
}

// While a window is freed, others may still look for what has been shown there.
TEST(SharedRanges, WhatIsLeavingIsFoundButNotShown) {
  SharedRanges ranges;
  const std::vector<int> all{0, 1};
  ranges.add({7, memory.data(), 50, all});
  const ShownBuffer shown = ranges.shown(memory.data() + 3, 8, all);
  ranges.set_leaving(7, true);
  EXPECT_EQ(ranges.shown(memory.data() + 3, 8, all).memory, kNotShared);
  EXPECT_EQ(ranges.find(shown), memory.data() + 3);
  ranges.set_leaving(7, false);
  EXPECT_EQ(ranges.shown(memory.data() + 3, 8, all).memory, 7);
  ranges.remove(7);
  EXPECT_FALSE(ranges.find(shown));
}

TEST(Habits, WhatIsInVainIsTriedEverMoreSeldom) {
  constexpr std::uint32_t kThis = 0x123, kOther = 0x125;
  Habits habits;
  for (const int expected : {1, 3, 7, 15, 31, 63, 63}) {
    ASSERT_TRUE(habits.worth_trying(kThis));
    habits.tried(kThis, false);
    EXPECT_TRUE(habits.worth_trying(kOther));
    for (int i = 0; i < expected; ++i) EXPECT_FALSE(habits.worth_trying(kThis));
  }
  EXPECT_TRUE(habits.worth_trying(kThis));
  habits.tried(kThis, true);
  EXPECT_TRUE(habits.worth_trying(kThis));
}

TEST(Habits, NoCallHasThatOfAnother) {
  constexpr std::uint32_t kThis = 0x123, kAll = 1u << kFingerprintBits;
  Habits habits;
  habits.tried(kThis, false);
  for (std::uint32_t other = 1; other < kAll; other += 2)
    EXPECT_EQ(habits.worth_trying(other), other != kThis) << other;
}

}  // namespace
}  // namespace weft
