// Which buffers in shared memory are shown to other ranks, and who finds them.
#include "shm/shared_ranges.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "shm/retry_backoff.h"

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

// A window of some ranks cannot be used in a collective of other ranks, too.
TEST(SharedRanges, OnlyToRanksThatAllHaveTheRange) {
  SharedRanges ranges;
  ranges.add({7, memory.data(), 50, {1, 3, 5}});
  EXPECT_EQ(ranges.shown(memory.data(), 8, std::vector{1, 5}).memory, 7);
  EXPECT_EQ(ranges.shown(memory.data(), 8, std::vector{1, 2, 5}).memory, kNotShared);
  EXPECT_EQ(ranges.shown(memory.data(), 8, std::vector{0, 1}).memory, kNotShared);
}

// While a window is being freed, other ranks may still look for a buffer that was shown before.
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

// A heap. Other ranks map a part when something in it is shown to them for the first time.
struct Heaps {
  Heaps()
      : parts(std::move(
            *Segment::create(SegmentParts::bytes_of_all(3), Segment::Mapped::first_page))),
        seen(std::move(*Segment::attach(parts.segment().name(), Segment::Mapped::first_page))) {
    owner.add_own_heap(4, parts, {2, 4, 6});
    other.add_heap(4, seen);
  }
  SegmentParts parts, seen;
  SharedRanges owner, other;
};

// The first use attaches the heap. If that fails, the heap counts as unreachable for good.
TEST(SharedRanges, AHeapIsAttachedWhenItIsFirstNeeded) {
  Heaps heaps;
  const std::vector<int> all{2, 4, 6};
  std::byte* const at = heaps.parts.map(0) + 5000;
  *at = std::byte{9};
  const ShownBuffer shown = heaps.owner.shown(at, 100, all);
  SharedRanges later;
  SegmentName said{}, of_nobody{};
  later.add_heap(7, &of_nobody);
  later.add_heap(4, &said);
  said = heaps.parts.segment().name();  // gives the heap its name, after it was added
  const auto found = later.find(shown);
  ASSERT_TRUE(found && *found);
  EXPECT_NE(*found, at);
  EXPECT_EQ(**found, std::byte{9});
  SegmentParts other(
      std::move(*Segment::create(SegmentParts::bytes_of_all(1), Segment::Mapped::first_page)));
  SegmentName wrong = heaps.parts.segment().name();
  wrong.token = other.segment().name().token;
  SharedRanges wrongly;
  wrongly.add_heap(4, &wrong);
  const auto not_found = wrongly.find(shown);
  ASSERT_TRUE(not_found);
  EXPECT_EQ(*not_found, nullptr);
  EXPECT_EQ(*wrongly.find(shown), nullptr);
  EXPECT_FALSE(SharedRanges().find(shown));
}

TEST(SharedRanges, ABufferInAHeapIsShownToBeMapped) {
  Heaps heaps;
  const std::vector<int> all{2, 4, 6}, some{2, 4};
  for (const int part : {0, 2}) {
    std::byte* const at = heaps.parts.map(part) + 5000;
    const ShownBuffer shown = heaps.owner.shown(at, 1000, some);
    EXPECT_EQ(shown.memory, 4);
    EXPECT_EQ(shown.pages, 1U);
    at[3] = std::byte{7};
    EXPECT_EQ(heaps.seen.at(part), nullptr);
    const auto found = heaps.other.find(shown);
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((*found)[3], std::byte{7});
    heaps.owner.all_have(shown, some);
    EXPECT_EQ(heaps.owner.shown(at + 9000, 1000, some).pages, 0U);
    EXPECT_EQ(heaps.owner.shown(at + 9000, 1000, all).pages, 1U);
    EXPECT_EQ(heaps.owner.shown(at, 1000, std::vector{2, 3, 4}).memory, kNotShared);
  }
}

// The origin from which other ranks count may lie before the part, or before the whole heap.
TEST(SharedRanges, TheOriginOfABufferInAHeapMayLieElsewhere) {
  Heaps heaps;
  const std::vector<int> all{2, 4, 6};
  for (const int part : {0, 1}) {
    std::byte* const at = heaps.parts.map(part) + 100;
    for (const std::int64_t to_origin : {-20'000, -200, 200, 40'000'000}) {
      const ShownBuffer shown = heaps.owner.shown(at, 1000, all, to_origin);
      const auto found = heaps.other.find(shown);
      ASSERT_TRUE(found && *found);
      *at = std::byte{static_cast<unsigned char>(part + 3)};
      EXPECT_EQ(*(*found - to_origin), *at);
      EXPECT_EQ(heaps.seen.at(2), nullptr);
    }
  }
}

TEST(RetryBackoff, WhatIsInVainIsTriedEverMoreSeldom) {
  constexpr std::uint32_t kThis = 0x123, kOther = 0x125;
  RetryBackoff backoff;
  for (const int expected : {1, 3, 7, 15, 31, 63, 63}) {
    ASSERT_TRUE(backoff.worth_trying(kThis));
    backoff.tried(kThis, false);
    EXPECT_TRUE(backoff.worth_trying(kOther));
    for (int i = 0; i < expected; ++i) EXPECT_FALSE(backoff.worth_trying(kThis));
  }
  EXPECT_TRUE(backoff.worth_trying(kThis));
  backoff.tried(kThis, true);
  EXPECT_TRUE(backoff.worth_trying(kThis));
}

TEST(RetryBackoff, NoCallHasThatOfAnother) {
  constexpr std::uint32_t kThis = 0x123, kAll = 1u << kFingerprintBits;
  RetryBackoff backoff;
  backoff.tried(kThis, false);
  for (std::uint32_t other = 1; other < kAll; other += 2)
    EXPECT_EQ(backoff.worth_trying(other), other != kThis) << other;
}

}  // namespace
}  // namespace weft
