// How often Weft's thread checks whether other processes wait for it, by a clock that the test
// controls.
#include "engine/answer_pace.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft {
namespace {

constexpr std::int64_t kMs = 1'000'000, kSecond = 1'000 * kMs;
constexpr std::int64_t kCold_ns = 2'000, kIdle_ns = 100, kArrival_ns = 1'000;

// A process whose MPI calls take the given times.
class Process {
 public:
  AnswerPace pace;
  std::int64_t now = kSecond;

  // Polls once with calls that take these times, followed by idle ones. Returns the number of
  // calls.
  int look(const std::vector<std::int64_t>& took, std::int64_t idle_ns = kIdle_ns) {
    std::size_t calls = 0;
    for (bool continues = true; continues;) {
      const std::int64_t ns = calls < took.size() ? took[calls] : idle_ns;
      ++calls;
      now += ns;
      continues = pace.continues(static_cast<int>(calls), now, ns);
    }
    return static_cast<int>(calls);
  }
  void look_idly(int looks) {
    for (int i = 0; i < looks; ++i) sleep(), look({kCold_ns});
  }
  void sleep() { now += pace.sleep_ns(now); }
};

TEST(AnswerPace, LooksAreFewWhileNothingComes) {
  Process process;
  int looks = 0;
  for (const std::int64_t until = process.now + 10 * kSecond; process.now < until; ++looks)
    process.look_idly(1);
  EXPECT_LE(looks, 4'000);
  EXPECT_EQ(process.pace.sleep_ns(process.now), AnswerPace::kMost_ns);
}

TEST(AnswerPace, ALookLastsAMoment) {
  Process process;
  EXPECT_EQ(process.look({kCold_ns}), 1 + AnswerPace::kLinger_ns / kIdle_ns);
}

TEST(AnswerPace, AfterAnArrivalTheNextLookComesSoonAndThenEachTimeLater) {
  Process process;
  process.look_idly(10);
  process.look({kCold_ns, kIdle_ns, kArrival_ns});
  std::vector<std::int64_t> sleeps;
  for (int i = 0; i < 6; ++i) {
    sleeps.push_back(process.pace.sleep_ns(process.now));
    process.look_idly(1);
  }
  EXPECT_EQ(sleeps.front(), AnswerPace::kLeast_ns);
  EXPECT_EQ(sleeps.back(), AnswerPace::kMost_ns);
  for (std::size_t i = 1; i < sleeps.size(); ++i) EXPECT_GE(sleeps[i], sleeps[i - 1]);
}

// A long first call is an arrival, such as the lock for a one-sided access, for whose answer the
// kernel takes time.
TEST(AnswerPace, ALongFirstCallIsAnArrival) {
  Process process;
  process.look_idly(10);
  process.look({20 * kCold_ns});
  EXPECT_EQ(process.pace.sleep_ns(process.now), AnswerPace::kLeast_ns);
}

TEST(AnswerPace, ColdCachesAreNoArrival) {
  Process process;
  process.look_idly(10);
  process.look({3 * kCold_ns});
  EXPECT_EQ(process.pace.sleep_ns(process.now), AnswerPace::kMost_ns);
}

TEST(AnswerPace, ALookGoesOnWhileSomethingArrives) {
  Process process;
  process.look_idly(10);
  std::vector<std::int64_t> took(200, kArrival_ns);
  EXPECT_EQ(process.look(took), 200 + AnswerPace::kLinger_ns / kIdle_ns);
}

// Calls may become slower because the MPI library has more connections to poll.
TEST(AnswerPace, CallsThatHaveBecomeSlowerDoNotKeepTheThreadAwake) {
  Process process;
  process.look_idly(10);
  constexpr std::int64_t kSlower_ns = 6 * kIdle_ns;
  for (int i = 0; i < 40; ++i) {
    process.sleep();
    EXPECT_LE(process.look({kCold_ns}, kSlower_ns), 1 + AnswerPace::kMostArrivals);
  }
  process.sleep();
  EXPECT_LE(process.look({kCold_ns}, kSlower_ns), 10);
}

}  // namespace
}  // namespace weft
