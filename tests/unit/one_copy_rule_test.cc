// From how many bytes on the kernel should copy between processes, by the times of a trial.
#include "select/one_copy_rule.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr std::int64_t kKib = 1024;

OneCopyFound::Time won(std::int64_t kib) {
  return {kib * kKib, 90, 100};
}
OneCopyFound::Time lost(std::int64_t kib) {
  return {kib * kKib, 91, 100};
}

TEST(OneCopyRule, WhatHasNotWonIsCopiedTwice) {
  EXPECT_EQ(OneCopyFound{}.least_bytes(), OneCopyRule::kNever);
  EXPECT_EQ((OneCopyFound{{lost(512)}}.least_bytes()), OneCopyRule::kNever);
}

TEST(OneCopyRule, ASizeGoesWithTheNearestThatWasMeasured) {
  const std::int64_t least = OneCopyFound{{won(512), won(256), lost(128)}}.least_bytes();
  EXPECT_LT(least, 190 * kKib);  // nearer to 256 KiB than to 128 KiB
  EXPECT_GT(least, 170 * kKib);
  OneCopyRule rule;
  rule.least_of_one = rule.least_of_all = least;
  Shape shape;
  shape.kind = Kind::bcast;
  shape.size = 2;
  const auto takes = [&](std::int64_t kib) {
    shape.send.count = shape.recv.count = kib * kKib;
    return rule.takes(shape);
  };
  EXPECT_TRUE(takes(200));
  EXPECT_FALSE(takes(150));
}

}  // namespace
}  // namespace weft
