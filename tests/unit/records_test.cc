// What a summary says about the results of call classes, and how a wait is divided.
#include "runtime/job/records.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace weft {
namespace {

// Variant 0 is in use and takes 10 ms; native, its challenger, takes native_ms.
std::string words_of_result(int won, int pairs, bool was_left, std::int64_t native_ms) {
  CallClassRecord record;
  record.variants = {"thread ring", "native"};
  record.found.settled = true;
  record.found.challenger = 1;
  record.found.won = won;
  record.found.pairs = pairs;
  record.found.was_left = was_left;
  record.found.median_ns = {10'000'000, native_ms * 1'000'000};
  LearntReport report;
  report.call_classes.push_back(record);
  return text_of(report, 1);
}

TEST(Records, SayHowSureAResultIs) {
  const auto says = [](const std::string& text, const std::string& words) {
    return text.find("thread ring, " + words + ";") != text.npos;
  };
  EXPECT_TRUE(
      says(words_of_result(5, 5, false, 20), "50 % less time than native (in 5 of 5 rounds)"));
  EXPECT_TRUE(says(words_of_result(2, 2, false, 20),
                   "50 % less time than native (in 2 of 2 rounds, by chance 25 %)"));
  EXPECT_TRUE(says(words_of_result(2, 2, true, 20),
                   "50 % less time than native, which took 2.0 times as long and was met in 2 "
                   "rounds only"));
  EXPECT_TRUE(says(words_of_result(1, 1, true, 20),
                   "50 % less time than native, which took 2.0 times as long and was met in 1 "
                   "round only"));
  EXPECT_TRUE(says(words_of_result(1, 2, false, 10), "as fast as native (2 rounds)"));
}

TEST(Records, DivideAWaitAmongThoseThatHaveNotEnded) {
  using Shares = std::vector<std::int64_t>;
  EXPECT_EQ(divided_wait(100, {}), Shares{});
  EXPECT_EQ(divided_wait(100, {160}), Shares{60});
  EXPECT_EQ(divided_wait(100, {160, 160, 160}), (Shares{20, 20, 20}));
  // Three operations share the first 30, two share the next 20, and the last one has 10 alone.
  EXPECT_EQ(divided_wait(100, {160, 130, 150}), (Shares{30, 10, 20}));
  // The first operation ended before the wait began.
  EXPECT_EQ(divided_wait(100, {40, 120}), (Shares{0, 20}));
}

}  // namespace
}  // namespace weft
