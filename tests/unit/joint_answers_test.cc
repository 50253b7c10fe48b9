// Joint answers: whichever rank asks first, and whatever others do between its two accesses, all
// ranks get the same answer to each question.
#include "shm/joint_answers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

namespace weft {
namespace {

// One word of shared memory. Other ranks may act right before a rank accesses it.
struct InterruptedWord {
  std::int64_t* word;
  std::function<void()>* before_change;
  std::function<void()>* before_get;

  std::int64_t get(std::size_t) const {
    if (*before_get) std::exchange(*before_get, {})();
    return *word;
  }
  void change(std::size_t, std::int64_t expected, std::int64_t value) const {
    if (*before_change) std::exchange(*before_change, {})();
    if (*word == expected) *word = value;
  }
};

struct Rank {
  explicit Rank(std::int64_t* word) : answers({word, &before_change, &before_get}) {}
  Rank(const Rank&) = delete;

  std::function<void()> before_change, before_get;
  JointAnswers<InterruptedWord> answers;
};

TEST(JointAnswers, AreThoseOfTheFirstRankToAsk) {
  std::int64_t word = 0;
  Rank a(&word), b(&word), c(&word);
  std::array<Rank*, 3> order{&a, &b, &c};
  std::sort(order.begin(), order.end());
  int question = 0;
  do {
    for (int opinions = 0; opinions < 8; ++opinions, ++question)
      for (int place = 0; place < 3; ++place)
        EXPECT_EQ(
            order[static_cast<std::size_t>(place)]->answers.next((opinions & (1 << place)) != 0),
            (opinions & 1) != 0)
            << question;
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(JointAnswers, AreTheSameIfAnotherRankAsksMeanwhile) {
  for (const bool own : {false, true}) {
    std::int64_t word = 0;
    Rank a(&word), b(&word);
    bool of_b = own;
    a.before_change = [&] { of_b = b.answers.next(!own); };
    EXPECT_EQ(a.answers.next(own), !own);
    EXPECT_EQ(of_b, !own);
    a.before_get = [&] { of_b = b.answers.next(!own); };
    EXPECT_EQ(a.answers.next(own), own);
    EXPECT_EQ(of_b, own);
  }
}

}  // namespace
}  // namespace weft
