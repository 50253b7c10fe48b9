// Positions: the positions of the cycle in which the calls of one kind (call class) repeat
// (select/cycle.h); calls without a cycle have one position. Each position has a variant (engine
// and algorithm) in use and the times of its trials. The learner decides when something is tried
// (select/learner.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "select/tried_variants.h"

namespace weft {

struct Position {
  int variant = 0;  // index of the variant that calls use outside trials
  std::int64_t period_ns = 0;
  TriedVariants tried;
  // Number of consecutive calls of this position that use one variant in trials; they are called a
  // slot.
  int slot_calls = 1;
  int slot_warm_ups = 0;  // number of the first calls of a slot whose times do not count
  // Numbers of stages of trials, and of slots (runs of calls with one variant) in them, so far.
  int stages = 0, slots = 0;
  bool is_done = false;  // whether nothing more will be tried at this position
  // The time of a call with each variant in an earlier run or, if that is later, when it was last
  // compared with the variant in use; 0 or missing if unknown.
  std::vector<std::int64_t> other_ns{};

  // Returns the time of a call with this variant in ns; 0 if it is unknown.
  std::int64_t ns_of(int variant) const;
  void note(int variant, std::int64_t ns);
  // Makes the variant that was best in the trials the one in use.
  void settle();
};

// Found: what was found out about one position of a cycle of calls, for reports.
struct Found {
  int variant = 0;
  bool settled = false;
  // The members from here to is_learnt describe all positions of the call class together.
  std::uint64_t calls = 0;
  std::uint64_t calls_on_trial = 0;
  // Time in ns that the trials took beyond that of the variant in use, on the slowest rank.
  std::int64_t trials_cost_ns = 0;
  // Time in ns that the variants in use have saved compared with the variant that the static
  // selection rule takes.
  std::int64_t won_ns = 0;
  int depth = 1;           // number of calls in flight together
  bool is_learnt = false;  // whether this run has found the variants in use
  // Returns whether the result comes from this run and not from an earlier one.
  bool is_new() const { return settled && is_learnt; }
  // The members from here on describe this position. challenger: index of the variant with which
  // the one in use was compared: the MPI library's, the static rule's or the second best.
  int challenger = 0;
  // won: rounds in which the variant in use was faster than the challenger. pairs: all rounds in
  // which both were tried.
  int won = 0, pairs = 0;
  // Whether the challenger was dropped because it was clearly slower in all rounds.
  bool was_left = false;
  // Median time of a call with each variant in ns; 0 if it was not tried.
  std::vector<std::int64_t> median_ns;
};

class Positions {
 public:
  // Begins with one position, which uses variant 0. The parameters are those of TriedVariants.
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

  // Replaces all positions by one for each period. Nothing has been tried at the new ones. Each
  // takes the variant of that old position whose period is nearest.
  void renew(const std::vector<std::int64_t>& period_ns);
  void leave_out(int variant);  // excludes the variant at all positions
  // Returns the variant with which the one in use should be compared: the MPI library's or, if that
  // is in use, the fastest other one whose time is known, except `except`; -1 if there is none.
  int challenger_of(const Position& position, int except) const;
  // Returns an object for trials of these two variants only.
  TriedVariants only(int variant, int challenger) const;
  // Merges positions whose periods differ only because they have used different variants.
  void merge_alike();

  std::int64_t mean_period_ns() const;
  // Returns whether the program has changed: the position's period is now_ns, which differs from
  // the known one by three tenths, and by a tenth of the mean period of all positions.
  bool has_moved(std::size_t position, std::int64_t now_ns) const;
  bool is_all_done() const;
  int slots_tried() const;

  // Returns for each position the variant in use and how it compared with others; if nothing was
  // tried, only its period.
  std::vector<Found> found() const;

 private:
  int variant_near(std::int64_t period_ns) const;

  int native_;
  bool blocking_;
  std::vector<Position> all_;
  std::size_t cycle_ = 1;  // number of positions, that is, all_.size()
};

}  // namespace weft
