// Finds the best way, and those that are not worth another round.
#include "select/tried_ways.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft {
namespace {

constexpr std::size_t kMostKept = 3;  // ways after the second stage

// So much slower than the best may the library's own way be and stay, if the best won so many
// rounds: the surer it is, the less. apart: of all rounds the best's slowest was faster than the
// library's fastest. A site may be one of many in an iteration: what it wins is little of a period.
int librarys_percent(int won, int rounds, bool apart) {
  if (rounds >= 3 && apart) return 1;
  if (rounds >= 6 && won * 8 >= rounds * 7) return 2;
  return rounds >= 3 && won == rounds ? 3 : 5;
}

}  // namespace

std::int64_t median_of(std::vector<std::int64_t> values) {
  std::erase(values, 0);
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Sums the probabilities from no round won upwards.
double chance_of(int won, int rounds) {
  double of_exactly = std::ldexp(1.0, -rounds), chance = 0;
  for (int k = 0; k <= rounds; ++k) {
    if (k >= won) chance += of_exactly;
    of_exactly = of_exactly * (rounds - k) / (k + 1);
  }
  return chance;
}

void TriedWays::add_round(const std::vector<std::int64_t>& ns) {
  for (std::size_t way = 0; way < ways_.size(); ++way) ways_[way].each_ns.push_back(ns[way]);
}

int TriedWays::left() const {
  return static_cast<int>(
      std::count_if(ways_.begin(), ways_.end(), [](const Way& way) { return !way.out; }));
}

// Judges by the least time of each way. After two times, ways that take half as long again are
// dropped; the library's and the rule's only if they take more than twice as long, and not at all
// for blocking calls, whose single times say least. After three times only a few are kept.
void TriedWays::drop_the_slow(int stage) {
  std::vector<std::int64_t> sorted;
  for (std::size_t way = 0; way < ways_.size(); ++way)
    if (!ways_[way].out) sorted.push_back(least_ns(static_cast<int>(way)));
  std::sort(sorted.begin(), sorted.end());
  const std::int64_t best = sorted.front();
  const std::int64_t last = sorted[std::min(kMostKept, sorted.size()) - 1];
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    const int way = static_cast<int>(i);
    const std::int64_t ns = least_ns(way);
    const bool is_safe = way == 0 || way == native_;
    if (stage == 1 && is_safe && blocking_) continue;
    const bool is_slow =
        stage == 1 ? ns * 2 > best * (is_safe ? 4 : 3) : ns > last || ns * 4 > best * 5;
    if (is_slow) ways_[i].out = true;
  }
}

void TriedWays::drop_the_distant() {
  const std::int64_t best_ns = median_ns(best());
  for (std::size_t way = 0; way < ways_.size(); ++way)
    if (median_ns(static_cast<int>(way)) * 20 > best_ns * 21) ways_[way].out = true;
}

int TriedWays::best() const {
  int best = 0;
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    const int way = static_cast<int>(i);
    if (!ways_[i].out && (is_out(best) || median_ns(way) < median_ns(best))) best = way;
  }
  return best;
}

bool TriedWays::stays(int way, Percent percent_of) const {
  const int best = this->best();
  const std::int64_t ns = median_ns(way);
  if (ns == 0 || way == best) return ns > 0;
  const auto [won, rounds] = rounds_won(best, way);
  const std::int64_t percent = percent_of(won, rounds, most_ns(best) < least_ns(way));
  const bool is_doubtful = won * 3 < rounds * 2 && ns * 2 < median_ns(best) * 3;
  return ns * 100 <= median_ns(best) * (100 + percent) || is_doubtful;
}

int TriedWays::preferred() const {
  if (native_ >= 0 && stays(native_, librarys_percent)) return native_;
  return stays(0, [](int, int, bool) { return 1; }) ? 0 : best();
}

bool TriedWays::is_beaten(int way) const {
  return !stays(way, librarys_percent);
}

std::pair<int, int> TriedWays::rounds_won(int way, int rival) const {
  const auto& own = of(way).each_ns;
  const auto& rivals = of(rival).each_ns;
  int won = 0, rounds = 0;
  for (std::size_t round = 0; round < std::min(own.size(), rivals.size()); ++round) {
    if (own[round] == 0 || rivals[round] == 0) continue;
    ++rounds;
    if (own[round] < rivals[round]) ++won;
  }
  return {won, rounds};
}

std::int64_t TriedWays::median_ns(int way) const {
  return median_of(of(way).each_ns);
}

std::int64_t TriedWays::least_ns(int way) const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max() / 8;
  for (const std::int64_t ns : of(way).each_ns)
    if (ns > 0) least = std::min(least, ns);
  return least;
}

std::int64_t TriedWays::most_ns(int way) const {
  const auto& each = of(way).each_ns;
  return each.empty() ? 0 : *std::max_element(each.begin(), each.end());
}

int TriedWays::rival_of(int way) const {
  if (way != native_ && native_ >= 0) return native_;
  if (way != 0) return 0;
  int rival = 0;
  for (std::size_t i = 1; i < ways_.size(); ++i) {
    const std::int64_t ns = median_ns(static_cast<int>(i));
    if (ns > 0 && (rival == 0 || ns < median_ns(rival))) rival = static_cast<int>(i);
  }
  return rival;
}

}  // namespace weft
