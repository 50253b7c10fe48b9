// Trials: decides in which order the candidates for a persistent collective are measured, how often
// and until when, and which is best. All ranks must get the same answers, so these depend only on
// numbers that the ranks have agreed on, and can be tested without a clock. Measurements are
// interleaved, so that a change of the machine's state affects all candidates alike. A candidate's
// least time counts, since any disturbance makes it slower. Its median counts as well, so that one
// lucky moment on a busy machine does not decide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace weft {

class Trials {
 public:
  // candidates: their number; candidate 0 is the static rule's. budget_ns: the time for everything
  // up to the end of the initialisation. A quarter of it is kept for the steps after the
  // measurements.
  Trials(std::size_t candidates, std::int64_t budget_ns);

  struct Trial {
    std::size_t candidate;
    int repetitions;
    // Number of calls before the timed ones that are not timed, since the caches still hold the
    // previous candidate's data.
    int warm_ups;
  };
  // Returns the next candidate to measure; nothing when all measurements are done. elapsed_ns: the
  // time since the initialisation began, on the slowest rank.
  std::optional<Trial> next(std::int64_t elapsed_ns);
  // Returns whether there is still time for a measurement after it has been prepared.
  bool has_time(std::int64_t elapsed_ns) const { return elapsed_ns <= limit_ns_; }
  // Drops a candidate that does not apply.
  void leave_out(std::size_t candidate) { records_[candidate].is_left_out = true; }
  // Returns whether at most one candidate is left.
  bool nothing_to_compare() const;
  // Adds a measurement: the time of each call on the slowest rank.
  void add(const Trial& trial, std::int64_t each_ns);

  // Returns whether the static rule's candidate and at least one other were measured.
  bool conclusive() const;
  // Returns the fastest candidate if it is clearly faster than the static rule's, otherwise
  // candidate 0, the rule's.
  std::size_t best() const;
  // Returns whether another run would give the same result: the static rule's candidate is the
  // best, all candidates were measured, and no other one's least time is clearly below the median
  // of the rule's.
  bool certain() const;
  // Returns the least time of a call with the candidate in ns; 0 if it was not measured.
  std::int64_t least_ns(std::size_t candidate) const;

 private:
  struct Record {
    std::int64_t cold_ns = 0;           // time of the first call, which only predicts later ones
    std::vector<std::int64_t> each_ns;  // times of later calls in ascending order
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
