// Positions: the calls of a site, told apart by their place in the cycle in which they come around
// (select/cycle.h): one position, or that of each. What each of them goes by, and what has been
// tried there. When something is tried, the learner decides (select/learner.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "select/tried_ways.h"

namespace weft {

struct Position {
  int way = 0;  // outside trials
  std::int64_t period_ns = 0;
  TriedWays tried;
  int slot_calls = 1;         // of its own, that go the same way together
  int slot_warm_ups = 0;      // of these, the first, which do not count
  int stages = 0, slots = 0;  // that were tried
  bool is_done = false;       // nothing more is to be tried
  // Of each way, what it took in an earlier run, or when it was last compared with the one in use;
  // empty, or 0: nothing is known.
  std::vector<std::int64_t> other_ns{};

  // What a call takes that goes this way, as far as it is known; 0: it is not.
  std::int64_t ns_of(int way) const;
  void note(int way, std::int64_t ns);
  // The way that was the best on trial.
  void settle();
};

// What is known of a position, for reports.
struct Found {
  int way = 0;
  bool settled = false;
  // Of the site:
  std::uint64_t calls = 0;
  std::uint64_t calls_on_trial = 0;
  // More than the way in use would have taken, on the slowest rank.
  std::int64_t trials_cost_ns = 0;
  // By the ways that were found, against the rule's.
  std::int64_t won_ns = 0;
  int depth = 1;                                        // so many calls are in flight together
  bool is_learnt = false;                               // by this run
  bool is_new() const { return settled && is_learnt; }  // not known before
  // Of the position:
  int rival = 0;                        // native, or the rule's way, or the next best
  int won = 0, pairs = 0;               // rounds in which both were tried, and it took less time
  std::vector<std::int64_t> median_ns;  // of each way; 0: not tried
};

class Positions {
 public:
  // One, which goes by the first way. As TriedWays has them.
  Positions(std::size_t ways, int native, bool blocking);

  std::size_t cycle() const { return cycle_; }
  std::size_t of(std::uint64_t call) const { return call % cycle_; }
  int way_of(std::uint64_t call) const {
    return cycle_ == 1 ? all_.front().way : all_[of(call)].way;
  }
  Position& operator[](std::size_t i) { return all_[i]; }
  const Position& operator[](std::size_t i) const { return all_[i]; }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

  // As many as there are periods, at which nothing is tried. Each goes by the way of the one before
  // whose period is the nearest.
  void renew(const std::vector<std::int64_t>& period_ns);
  void leave_out(int way);  // at all of them
  // What the way in use is to be compared with: the library's own or, where that is in use, the
  // fastest other one that is known, but for `except`. -1: none is.
  int rival_of(const Position& position, int except) const;
  // These two alone, before anything was tried.
  TriedWays only(int way, int rival) const;
  // Those that differed only by the ways that they went are one.
  void merge_alike();

  std::int64_t mean_period_ns() const;
  // Whether the program does something else: by three tenths of the position's period, and a tenth
  // of the mean one.
  bool has_moved(std::size_t position, std::int64_t now_ns) const;
  bool is_all_done() const;
  int slots_tried() const;

  // The way taken now, and how it did against others; where none was tried, its period.
  std::vector<Found> found() const;

 private:
  int way_near(std::int64_t period_ns) const;

  int native_;
  bool blocking_;
  std::vector<Position> all_;
  std::size_t cycle_ = 1;  // all_.size()
};

}  // namespace weft
