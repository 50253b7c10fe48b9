// TriedVariants: the times of the variants (engine and algorithm) that the calls of one kind have
// tried, round by round, and the best variant by their medians (docs/inside/learning.md). The
// learner decides what is tried and when (select/learner.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weft {

class TriedVariants {
 public:
  // variants: their number; variant 0 is the static rule's. native: the index of the variant that
  // leaves the call to the MPI library; -1 if there is none. blocking: whether the times are those
  // of blocking calls.
  TriedVariants(std::size_t variants, int native, bool blocking)
      : native_(native), blocking_(blocking), variants_(variants) {}

  std::size_t variants() const { return variants_.size(); }
  // Adds the times of one round in ns, indexed by variant; 0 for a variant that was not tried in
  // this round.
  void add_round(const std::vector<std::int64_t>& ns);

  bool is_out(int variant) const { return of(variant).out; }
  // Returns whether drop_the_slow() has dropped the variant.
  bool is_slow(int variant) const { return of(variant).slow; }
  void leave_out(int variant) { of(variant).out = true; }
  int left() const;
  // Drops variants that are clearly slower than the best. Must be called after the first and the
  // second stage of trials, with stage 1 or 2.
  void drop_the_slow(int stage);
  // Drops variants that are more than a twentieth slower than the best.
  void drop_the_distant();

  // Returns the remaining variant with the least median.
  int best() const;
  // Returns the variant to use. That is the best one, unless the MPI library's, or else the static
  // rule's, is hardly slower. The library's is used if it is within 5 % of the best; within 3 % if
  // the best won all of three rounds or more; within 2 % if it won nearly all of six or more;
  // within 1 % if in three or more its slowest time was below the library's fastest. The rule's is
  // used within 1 %. Either is also used if the best won less than two thirds of the rounds, unless
  // it takes half as long again.
  int preferred() const;
  // Returns whether another remaining variant is so much faster that this one would not be kept
  // even if it were the MPI library's.
  bool is_beaten(int variant) const;
  // Median time of a call in ns; 0 if the variant was not tried.
  std::int64_t median_ns(int variant) const;
  // Least time of a call in ns; a very large number if the variant was not tried.
  std::int64_t least_ns(int variant) const;
  // Returns the variant with which `variant` is compared in reports: the MPI library's, or else the
  // static rule's, or else the second best.
  int challenger_of(int variant) const;
  // Returns the number of rounds in which `variant` was faster than `challenger`, and that of all
  // rounds in which both were tried.
  std::pair<int, int> rounds_won(int variant, int challenger) const;

 private:
  struct Variant {
    // Time of a call in each round in ns; 0 if the variant was not tried in it.
    std::vector<std::int64_t> each_ns;
    bool out = false, slow = false;
  };
  const Variant& of(int variant) const { return variants_[static_cast<std::size_t>(variant)]; }
  Variant& of(int variant) { return variants_[static_cast<std::size_t>(variant)]; }
  std::int64_t most_ns(int variant) const;
  // A function that returns by how many per cent a variant may be slower than the best one and
  // still be used. won, rounds: rounds that the best one won, and all rounds. apart: whether its
  // slowest time was below the other's fastest.
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
