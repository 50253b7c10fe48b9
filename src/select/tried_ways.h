// TriedWays: what has been measured of the ways that calls may go, round by round, and which of
// them is the best by that. Of each way the median counts; docs/inside/learning.md. What is
// measured, and when, the learner decides (select/learner.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weft {

class TriedWays {
 public:
  // native: the place of the way that leaves the call to the library; -1: there is none. blocking:
  // the times are those of blocking calls.
  TriedWays(std::size_t ways, int native, bool blocking)
      : native_(native), blocking_(blocking), ways_(ways) {}

  std::size_t ways() const { return ways_.size(); }
  // ns: of each way, 0: it was not tried in the round.
  void add_round(const std::vector<std::int64_t>& ns);

  bool is_out(int way) const { return of(way).out; }
  void leave_out(int way) { of(way).out = true; }
  int left() const;
  // After the first two stages of trials: what is clearly slower is out.
  void drop_the_slow(int stage);
  // What is more than a twentieth slower than the best is out.
  void drop_the_distant();

  // Of those that are left, by the median.
  int best() const;
  // The library's own way, or else the rule's, stays where it is hardly slower than the best: the
  // library's by 5 %, by 3 % where the best won three rounds or more, and all, by 2 % where it won
  // nearly all of six or more, by 1 % where of three or more its slowest was faster than the
  // library's fastest; the rule's by 1 %. And where the best won less than two of three
  // rounds, unless it is half as long again.
  int preferred() const;
  // Whether another of those that are left is so much faster that this one would not stay, were it
  // the library's own.
  bool is_beaten(int way) const;
  std::int64_t median_ns(int way) const;  // 0: not tried
  std::int64_t least_ns(int way) const;   // very long: not tried
  // What to compare a way with: native, or the rule's way, or the next best.
  int rival_of(int way) const;
  // Of the rounds in which both were tried: those that the way won, and all.
  std::pair<int, int> rounds_won(int way, int rival) const;

 private:
  struct Way {
    std::vector<std::int64_t> each_ns;  // by round, 0: left out
    bool out = false;
  };
  const Way& of(int way) const { return ways_[static_cast<std::size_t>(way)]; }
  Way& of(int way) { return ways_[static_cast<std::size_t>(way)]; }
  std::int64_t most_ns(int way) const;
  // Percent: how much slower it may be; of the rounds that the best won, all, and whether they are
  // apart.
  using Percent = int (*)(int won, int rounds, bool apart);
  bool stays(int way, Percent percent_of) const;

  int native_;
  bool blocking_;
  std::vector<Way> ways_;
};

// How probable it is that of two ways that are alike one wins so many rounds, or more (sign test).
double chance_of(int won, int rounds);

// Of those that are not 0; 0: there are none.
std::int64_t median_of(std::vector<std::int64_t> values);

}  // namespace weft
