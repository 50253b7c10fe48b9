// TriedVariants: the measured times of the variants that calls may take, round by round, and the
// best variant by their medians (docs/inside/learning.md). The learner decides what is measured and
// when (select/learner.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weft {

class TriedVariants {
 public:
  // native: the index of the variant that leaves the call to the library; -1 if there is none.
  // blocking: the times are those of blocking calls.
  TriedVariants(std::size_t variants, int native, bool blocking)
      : native_(native), blocking_(blocking), variants_(variants) {}

  std::size_t variants() const { return variants_.size(); }
  // Adds the times of one round. ns: the time of each variant; 0 if it was not tried in this round.
  void add_round(const std::vector<std::int64_t>& ns);

  bool is_out(int variant) const { return of(variant).out; }
  // Returns whether drop_the_slow() has dropped the variant.
  bool is_slow(int variant) const { return of(variant).slow; }
  void leave_out(int variant) { of(variant).out = true; }
  int left() const;
  // Drops variants that are clearly slower. Must be called after one of the first two stages of
  // trials.
  void drop_the_slow(int stage);
  // Drops variants that are more than a twentieth slower than the best.
  void drop_the_distant();

  // Returns the best of the remaining variants, by the median.
  int best() const;
  // Returns the variant to use. The library's, or else the rule's, stays if it is hardly slower
  // than the best. The library's stays within 5 %; within 3 % if the best won three rounds or more,
  // and all of them; within 2 % if it won nearly all of six or more; within 1 % if in three or more
  // its slowest time was below the library's fastest. The rule's stays within 1 %. Both stay if the
  // best won less than two thirds of the rounds, unless they take half as long again.
  int preferred() const;
  // Returns whether another remaining variant is so much faster that this one would not stay even
  // if it were the library's.
  bool is_beaten(int variant) const;
  std::int64_t median_ns(int variant) const;  // returns 0 if it was not tried
  std::int64_t least_ns(int variant) const;   // returns a very large number if it was not tried
  // Returns the variant to compare with: the library's, or the rule's, or the second best.
  int challenger_of(int variant) const;
  // Returns the number of rounds that `variant` won, and of all rounds in which both were tried.
  std::pair<int, int> rounds_won(int variant, int challenger) const;

 private:
  struct Variant {
    std::vector<std::int64_t> each_ns;  // time of a call in each round; 0: not tried
    bool out = false, slow = false;
  };
  const Variant& of(int variant) const { return variants_[static_cast<std::size_t>(variant)]; }
  Variant& of(int variant) { return variants_[static_cast<std::size_t>(variant)]; }
  std::int64_t most_ns(int variant) const;
  // A function that returns by how many per cent a variant may be slower than the best and still be
  // used. won, rounds: those of the best variant; apart: the times of the two do not overlap.
  using Percent = int (*)(int won, int rounds, bool apart);
  bool stays(int variant, Percent percent_of) const;

  int native_;
  bool blocking_;
  std::vector<Variant> variants_;
};

// Returns the probability that one of two equal variants wins at least `won` of `rounds` rounds
// (sign test).
double chance_of(int won, int rounds);

// Returns the median of the values that are not 0; 0 if there are none.
std::int64_t median_of(std::vector<std::int64_t> values);

}  // namespace weft
