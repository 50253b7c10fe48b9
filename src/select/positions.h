// Positions: distinguishes the calls of a call class by their place in the cycle in which they
// repeat (select/cycle.h); a call class without a cycle has one position. Each position holds its
// variant and the times of its trials. The learner decides when something is tried
// (select/learner.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "select/tried_variants.h"

namespace weft {

struct Position {
  int variant = 0;  // variant used outside trials
  std::int64_t period_ns = 0;
  TriedVariants tried;
  // Number of consecutive calls of this position that use one variant in trials.
  int slot_calls = 1;
  int slot_warm_ups = 0;      // number of these calls, the first ones, whose times do not count
  int stages = 0, slots = 0;  // numbers of stages and slots of trials so far
  bool is_done = false;       // nothing more will be tried
  // The time of each variant in an earlier run or, if that is later, when it was last compared with
  // the variant in use; empty or 0 if unknown.
  std::vector<std::int64_t> other_ns{};

  // Returns the time of a call by this variant; 0 if unknown.
  std::int64_t ns_of(int variant) const;
  void note(int variant, std::int64_t ns);
  // Sets `variant` to the best one of the trials.
  void settle();
};

// The results that a call class has at one position of its cycle, for reports.
struct Found {
  int variant = 0;
  bool settled = false;
  // This field and the following ones, up to is_learnt, describe the whole call class.
  std::uint64_t calls = 0;
  std::uint64_t calls_on_trial = 0;
  // Time in ns that the trials took beyond that of the variant in use, on the slowest rank.
  std::int64_t trials_cost_ns = 0;
  // Time in ns that the variants in use have saved compared with the static rule's.
  std::int64_t won_ns = 0;
  int depth = 1;           // number of calls in flight together
  bool is_learnt = false;  // this run has found the variants in use
  // True if it was not known from an earlier run.
  bool is_new() const { return settled && is_learnt; }
  // This field and the following ones describe the position.
  // Variant with which the one in use was compared: the library's, or the rule's, or the second
  // best.
  int challenger = 0;
  // Rounds that the variant in use won against that challenger, and all rounds in which both were
  // tried.
  int won = 0, pairs = 0;
  bool was_left = false;  // the challenger was dropped since it was clearly slower in all rounds
  std::vector<std::int64_t> median_ns;  // time of each variant; 0: not tried
};

class Positions {
 public:
  // Begins with one position, which uses the first variant. The parameters are those of
  // TriedVariants.
  Positions(std::size_t variants, int native, bool blocking);

  std::size_t cycle() const { return cycle_; }
  std::size_t of(std::uint64_t call) const { return call % cycle_; }
  int variant_of(std::uint64_t call) const {
    return cycle_ == 1 ? all_.front().variant : all_[of(call)].variant;
  }
  Position& operator[](std::size_t i) { return all_[i]; }
  const Position& operator[](std::size_t i) const { return all_[i]; }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

  // Makes one position per period, at which nothing has been tried. Each takes the variant of the
  // previous position with the nearest period.
  void renew(const std::vector<std::int64_t>& period_ns);
  void leave_out(int variant);  // excludes the variant at all positions
  // Returns the variant with which the one in use is to be compared: the library's or, if that is
  // in use, the fastest other known one except `except`; -1 if there is none.
  int challenger_of(const Position& position, int except) const;
  // Returns trials of these two variants only.
  TriedVariants only(int variant, int challenger) const;
  // Merges positions that differed only because they used different variants.
  void merge_alike();

  std::int64_t mean_period_ns() const;
  // Returns whether the program has changed, given the position's present period: it differs from
  // the known one by three tenths, and by a tenth of the mean period of all positions.
  bool has_moved(std::size_t position, std::int64_t now_ns) const;
  bool is_all_done() const;
  int slots_tried() const;

  // Returns for each position the variant in use and how it compared with others; without trials,
  // its period.
  std::vector<Found> found() const;

 private:
  int variant_near(std::int64_t period_ns) const;

  int native_;
  bool blocking_;
  std::vector<Position> all_;
  std::size_t cycle_ = 1;  // number of positions, equal to all_.size()
};

}  // namespace weft
