// The cache of schedules: which ones it keeps, and how much memory it takes at most.
#include "schedule/schedule_cache.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr char kRing = 0, kTree = 0;

Shape shape_of(std::int64_t count) {
  Shape shape;
  shape.recv.count = count;
  return shape;
}

// Gets schedules of this many steps from the cache, and counts how often one is built.
class Cache : public testing::Test {
 protected:
  std::shared_ptr<const Schedule> get(std::int64_t count, const void* algorithm = &kRing,
                                      std::size_t steps = 1) {
    return cache_.find_or(shape_of(count), algorithm, [&] {
      ++built_;
      Schedule made;
      made.shape = shape_of(count);
      made.steps.resize(steps);
      return made;
    });
  }

  ScheduleCache cache_;
  int built_ = 0;
};

TEST_F(Cache, BuildsOnceForEachShapeAndAlgorithm) {
  const auto first = get(1);
  EXPECT_EQ(get(1), first);
  EXPECT_NE(get(2), first);
  EXPECT_NE(get(1, &kTree), first);
  EXPECT_EQ(get(1), first);
  EXPECT_EQ(built_, 3);
}

TEST_F(Cache, DropsWhatWasUsedLongestAgo) {
  const int most = static_cast<int>(ScheduleCache::kMost);
  for (int i = 0; i < most; ++i) get(i);
  get(0);
  get(most);  // replaces the schedule for 1
  EXPECT_EQ(cache_.size(), ScheduleCache::kMost);
  built_ = 0;
  get(0);
  EXPECT_EQ(built_, 0);
  get(1);
  EXPECT_EQ(built_, 1);
}

TEST_F(Cache, IsBoundedByBytes) {
  const std::size_t steps = ScheduleCache::kMost_bytes / sizeof(Step) / 4;
  for (int i = 0; i < 10; ++i) {
    get(i, &kRing, steps);
    EXPECT_LE(cache_.bytes(), ScheduleCache::kMost_bytes);
  }
  EXPECT_EQ(cache_.size(), 3U);
}

TEST_F(Cache, KeepsTheLastOneHoweverLong) {
  get(1);
  const auto huge = get(2, &kRing, 2 * ScheduleCache::kMost_bytes / sizeof(Step));
  EXPECT_EQ(cache_.size(), 1U);
  EXPECT_EQ(get(2), huge);
  EXPECT_EQ(cache_.bytes(), bytes_of(*huge) + sizeof(Shape));
  get(1);
  EXPECT_EQ(cache_.size(), 1U);
  EXPECT_LT(cache_.bytes(), ScheduleCache::kMost_bytes);
}

}  // namespace
}  // namespace weft
