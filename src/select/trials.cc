// Round after round over the candidates that are not far behind.
#include "select/trials.h"

#include <algorithm>

namespace weft {
namespace {

constexpr int kMostRounds = 12;
constexpr int kMostRepetitions = 32;
// What one trial should take: long beside what reading the clock and agreeing take.
constexpr std::int64_t kTrial_ns = 20'000;

}  // namespace

Trials::Trials(std::size_t candidates, std::int64_t budget_ns)
    : limit_ns_(budget_ns / 4 * 3), records_(candidates) {}

std::optional<Trials::Trial> Trials::next(std::int64_t elapsed_ns) {
  for (;; ++next_) {
    if (next_ == records_.size()) {
      next_ = 0;
      ++round_;
    }
    if (round_ == kMostRounds) return std::nullopt;
    const Record& record = records_[next_];
    if (is_out(record)) continue;
    const std::int64_t each_ns = expected_ns(record);
    const std::int64_t fitting = each_ns > 0 ? kTrial_ns / each_ns : 1;
    const bool is_known = record.times > 1;
    const int repetitions =
        is_known ? static_cast<int>(std::clamp<std::int64_t>(fitting, 1, kMostRepetitions)) : 1;
    if (elapsed_ns + repetitions * each_ns > limit_ns_) return std::nullopt;
    return Trial{next_++, repetitions};
  }
}

void Trials::add(const Trial& trial, std::int64_t each_ns) {
  Record& record = records_[trial.candidate];
  ++record.times;
  if (record.times == 1)
    record.first_ns = each_ns;
  else if (record.times == 2 || each_ns < record.least_ns)
    record.least_ns = each_ns;
}

// Twice as slow as the best: more of it would only take time. The static rule's is never out.
bool Trials::is_out(const Record& record) const {
  if (record.times < 2 || &record == records_.data()) return false;
  return std::any_of(records_.begin(), records_.end(), [&](const Record& other) {
    return other.times > 1 && record.least_ns > 2 * other.least_ns;
  });
}

// Of one that has not run yet, as much as the slowest took when it was cold.
std::int64_t Trials::expected_ns(const Record& record) const {
  if (record.times > 1) return record.least_ns;
  if (record.times == 1) return record.first_ns;
  std::int64_t most = 0;
  for (const Record& other : records_) most = std::max(most, other.first_ns);
  return most;
}

bool Trials::conclusive() const {
  const auto measured = [](const Record& record) { return record.times > 1; };
  return measured(records_.front()) &&
         std::count_if(records_.begin(), records_.end(), measured) > 1;
}

std::size_t Trials::best() const {
  if (!conclusive()) return 0;
  std::size_t best = 0;
  for (std::size_t i = 1; i < records_.size(); ++i)
    if (records_[i].times > 1 && records_[i].least_ns < records_[best].least_ns) best = i;
  const bool clearly = records_[best].least_ns * 10 <= records_.front().least_ns * 9;
  return clearly ? best : 0;
}

std::int64_t Trials::least_ns(std::size_t candidate) const {
  return records_[candidate].least_ns;
}

}  // namespace weft
