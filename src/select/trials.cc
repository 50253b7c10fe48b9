// Implements Trials: measures the candidates for a persistent collective round by round, and drops
// those that are far behind.
#include "select/trials.h"

#include <algorithm>

namespace weft {
namespace {

constexpr int kMostRounds = 12;
constexpr int kMostRepetitions = 32;
// The desired duration of one measurement: long compared with reading the clock and with the
// agreement of the ranks.
constexpr std::int64_t kTrial_ns = 20'000;
// Number of node buffers (parts of shared memory, shm/node_buffers.h) that successive short calls
// use, and that long calls use.
constexpr std::int64_t kNodeBuffers = 4, kNodeBuffersOfLong = 2;
// If a call takes longer than this, the next one finds hardly any of its data in caches.
constexpr std::int64_t kLongest_ns = 200'000;
// The number of measurements after which the judgement of a candidate is certain.
constexpr std::size_t kEnough = 4;

// Returns whether `ns` is less than other_ns by at least a tenth.
bool is_clearly_less(std::int64_t ns, std::int64_t other_ns) {
  return ns * 10 <= other_ns * 9;
}

// Returns the number of calls before a measurement that are not timed. They bring each node buffer,
// and the caches, into the state that they have in consecutive calls. each_ns: the expected time of
// a call.
int warm_ups_of(std::int64_t each_ns) {
  if (each_ns > kLongest_ns) return 0;
  const std::int64_t fitting = kTrial_ns / std::max<std::int64_t>(each_ns, 1);
  return static_cast<int>(std::clamp(fitting, kNodeBuffersOfLong, kNodeBuffers));
}

}  // namespace

Trials::Trials(std::size_t candidates, std::int64_t budget_ns)
    : limit_ns_(budget_ns / 4 * 3), records_(candidates) {}

bool Trials::nothing_to_compare() const {
  const auto is_left_out = [](const Record& record) { return record.is_left_out; };
  return std::count_if(records_.begin(), records_.end(), is_left_out) + 1 >=
         static_cast<std::ptrdiff_t>(records_.size());
}

std::optional<Trials::Trial> Trials::next(std::int64_t elapsed_ns) {
  if (nothing_to_compare()) return std::nullopt;
  for (;; ++next_) {
    if (next_ == records_.size()) {
      next_ = 0;
      ++round_;
    }
    if (round_ == kMostRounds) return std::nullopt;
    const Record& record = records_[next_];
    if (is_out(record)) continue;
    const std::int64_t each_ns = expected_ns(record);
    const std::int64_t fitting =
        record.is_measured() ? kTrial_ns / std::max<std::int64_t>(each_ns, 1) : 0;
    const auto repetitions =
        static_cast<int>(std::clamp<std::int64_t>(fitting, 1, kMostRepetitions));
    const int warm_ups = record.is_measured() ? warm_ups_of(each_ns) : 0;
    if (elapsed_ns + (warm_ups + repetitions) * each_ns > limit_ns_) return std::nullopt;
    return Trial{next_++, repetitions, warm_ups};
  }
}

void Trials::add(const Trial& trial, std::int64_t each_ns) {
  Record& record = records_[trial.candidate];
  if (record.cold_ns == 0) {
    record.cold_ns = std::max<std::int64_t>(each_ns, 1);
    return;
  }
  record.each_ns.insert(std::upper_bound(record.each_ns.begin(), record.each_ns.end(), each_ns),
                        each_ns);
}

// Returns whether the candidate is dropped, because it does not apply or is more than twice as slow
// as another one. The static rule's candidate is never dropped for being slow.
bool Trials::is_out(const Record& record) const {
  if (record.is_left_out) return true;
  if (!record.is_measured() || &record == records_.data()) return false;
  return std::any_of(records_.begin(), records_.end(), [&](const Record& other) {
    return other.is_measured() && record.least_ns() > 2 * other.least_ns();
  });
}

// Returns the expected time of one call of the candidate. If it has not run yet, this is the
// slowest first run of any candidate.
std::int64_t Trials::expected_ns(const Record& record) const {
  if (record.is_measured()) return record.least_ns();
  if (record.cold_ns > 0) return record.cold_ns;
  std::int64_t most = 0;
  for (const Record& other : records_) most = std::max(most, other.cold_ns);
  return most;
}

bool Trials::conclusive() const {
  const auto measured = [](const Record& record) { return record.is_measured(); };
  return measured(records_.front()) &&
         std::count_if(records_.begin(), records_.end(), measured) > 1;
}

bool Trials::beats_the_rule(const Record& record) const {
  const Record& rule = records_.front();
  return record.is_measured() && is_clearly_less(record.least_ns(), rule.least_ns()) &&
         record.median_ns() <= rule.median_ns();
}

// Returns whether the candidate's least time is clearly below the median of the static rule's
// candidate. On a busy machine that median is far above the least time of the rule's candidate.
bool Trials::could_beat_the_rule(const Record& record) const {
  if (record.is_left_out) return false;
  return !record.is_measured() || is_clearly_less(record.least_ns(), records_.front().median_ns());
}

bool Trials::certain() const {
  if (best() > 0 || records_.front().each_ns.size() < kEnough) return false;
  return std::none_of(records_.begin() + 1, records_.end(),
                      [&](const Record& other) { return could_beat_the_rule(other); });
}

std::size_t Trials::best() const {
  if (!conclusive()) return 0;
  std::size_t best = 0;
  for (std::size_t i = 1; i < records_.size(); ++i)
    if (beats_the_rule(records_[i]) && records_[i].least_ns() < records_[best].least_ns()) best = i;
  return best;
}

std::int64_t Trials::least_ns(std::size_t candidate) const {
  const Record& record = records_[candidate];
  return record.is_measured() ? record.least_ns() : 0;
}

}  // namespace weft
