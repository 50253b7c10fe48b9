// Trials: in which order candidates are measured, how often, until when, and which one is best.
// Why apart from the measuring: all ranks must come to the same answers, so these rest on nothing
// but numbers that the ranks have agreed on, and can be tested without a clock.
// Interleaved, so that a change of the machine's state meets all candidates alike; the least of a
// candidate's times counts, since everything else that happens can only make it slower. Its median
// counts as well, so that one lucky moment on a busy machine does not decide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace weft {

class Trials {
 public:
  // The first candidate is the static rule's. The budget is for everything up to the end of the
  // initialisation; a quarter of it is left for what follows the measuring.
  Trials(std::size_t candidates, std::int64_t budget_ns);

  struct Trial {
    std::size_t candidate;
    int repetitions;
    int warm_ups;  // before, not to be timed: the caches have what the one before left
  };
  // elapsed_ns: since the beginning, on the slowest rank. None: it is over.
  std::optional<Trial> next(std::int64_t elapsed_ns);
  // Whether there still is any, where preparing a trial has taken time.
  bool has_time(std::int64_t elapsed_ns) const { return elapsed_ns <= limit_ns_; }
  // It turned out to be no candidate.
  void leave_out(std::size_t candidate) { records_[candidate].is_left_out = true; }
  // All but one did, or there are no more.
  bool nothing_to_compare() const;
  // What the trial took per repetition on the slowest rank.
  void add(const Trial& trial, std::int64_t each_ns);

  // At least one candidate has been compared with the static rule's.
  bool conclusive() const;
  // The fastest, if it is clearly faster than the static rule's; else that one.
  std::size_t best() const;
  // Whether another time it would come to the same: the static rule's is the best, each candidate
  // has been measured, and at their best no others are clearly faster than this one usually is.
  bool certain() const;
  // The least time of a candidate; 0: not measured.
  std::int64_t least_ns(std::size_t candidate) const;

 private:
  struct Record {
    std::int64_t cold_ns = 0;           // the first time: it only tells what the next may take
    std::vector<std::int64_t> each_ns;  // those after it, the least first
    bool is_left_out = false;

    bool is_measured() const { return !each_ns.empty(); }
    std::int64_t least_ns() const { return each_ns.front(); }
    std::int64_t median_ns() const { return each_ns[each_ns.size() / 2]; }
  };

  bool is_out(const Record& record) const;
  std::int64_t expected_ns(const Record& record) const;
  bool beats_the_rule(const Record& record) const;
  bool could_beat_the_rule(const Record& record) const;

  const std::int64_t limit_ns_;
  std::vector<Record> records_;
  std::size_t next_ = 0;
  int round_ = 0;
};

}  // namespace weft
