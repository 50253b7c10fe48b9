// Implements TriedVariants: finds the best variant, and those that are not worth another round.
#include "select/tried_variants.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft {
namespace {

// Most variants that are kept after the second stage of trials.
constexpr std::size_t kMostKept = 3;

// Returns by how many per cent the MPI library's variant may be slower than the best one and still
// be used. The percentage is smaller the more certain it is that the best one wins. won: number of
// rounds in which the best one was faster. apart: whether its slowest time was below the library's
// fastest. The percentage is small because these calls may be only some of many in an iteration, so
// that a gain may be a small part of a period.
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

// Adds the probabilities of winning `won`, won + 1, …, `rounds` rounds by chance.
double chance_of(int won, int rounds) {
  double of_exactly = std::ldexp(1.0, -rounds), chance = 0;
  for (int k = 0; k <= rounds; ++k) {
    if (k >= won) chance += of_exactly;
    of_exactly = of_exactly * (rounds - k) / (k + 1);
  }
  return chance;
}

void TriedVariants::add_round(const std::vector<std::int64_t>& ns) {
  for (std::size_t variant = 0; variant < variants_.size(); ++variant)
    variants_[variant].each_ns.push_back(ns[variant]);
}

int TriedVariants::left() const {
  return static_cast<int>(std::count_if(variants_.begin(), variants_.end(),
                                        [](const Variant& variant) { return !variant.out; }));
}

// Drops variants by their least times. In the first stage, those that take half as long again as
// the fastest are dropped; the MPI library's and the static rule's only if they take more than
// twice as long, and never for blocking calls, whose single times are least reliable. After the
// second stage only a few are kept.
void TriedVariants::drop_the_slow(int stage) {
  std::vector<std::int64_t> sorted;
  for (std::size_t variant = 0; variant < variants_.size(); ++variant)
    if (!variants_[variant].out) sorted.push_back(least_ns(static_cast<int>(variant)));
  std::sort(sorted.begin(), sorted.end());
  const std::int64_t best = sorted.front();
  const std::int64_t last = sorted[std::min(kMostKept, sorted.size()) - 1];
  for (std::size_t i = 0; i < variants_.size(); ++i) {
    const int variant = static_cast<int>(i);
    const std::int64_t ns = least_ns(variant);
    const bool is_safe = variant == 0 || variant == native_;
    if (stage == 1 && is_safe && blocking_) continue;
    const bool is_slow =
        stage == 1 ? ns * 2 > best * (is_safe ? 4 : 3) : ns > last || ns * 4 > best * 5;
    if (is_slow && !variants_[i].out) variants_[i].out = variants_[i].slow = true;
  }
}

void TriedVariants::drop_the_distant() {
  const std::int64_t best_ns = median_ns(best());
  for (std::size_t variant = 0; variant < variants_.size(); ++variant)
    if (median_ns(static_cast<int>(variant)) * 20 > best_ns * 21) variants_[variant].out = true;
}

int TriedVariants::best() const {
  int best = 0;
  for (std::size_t i = 0; i < variants_.size(); ++i) {
    const int variant = static_cast<int>(i);
    if (!variants_[i].out && (is_out(best) || median_ns(variant) < median_ns(best))) best = variant;
  }
  return best;
}

bool TriedVariants::stays(int variant, Percent percent_of) const {
  const int best = this->best();
  const std::int64_t ns = median_ns(variant);
  if (ns == 0 || variant == best) return ns > 0;
  const auto [won, rounds] = rounds_won(best, variant);
  const std::int64_t percent = percent_of(won, rounds, most_ns(best) < least_ns(variant));
  const bool is_doubtful = won * 3 < rounds * 2 && ns * 2 < median_ns(best) * 3;
  return ns * 100 <= median_ns(best) * (100 + percent) || is_doubtful;
}

int TriedVariants::preferred() const {
  if (native_ >= 0 && stays(native_, librarys_percent)) return native_;
  return stays(0, [](int, int, bool) { return 1; }) ? 0 : best();
}

bool TriedVariants::is_beaten(int variant) const {
  return !stays(variant, librarys_percent);
}

std::pair<int, int> TriedVariants::rounds_won(int variant, int challenger) const {
  const auto& own = of(variant).each_ns;
  const auto& rivals = of(challenger).each_ns;
  int won = 0, rounds = 0;
  for (std::size_t round = 0; round < std::min(own.size(), rivals.size()); ++round) {
    if (own[round] == 0 || rivals[round] == 0) continue;
    ++rounds;
    if (own[round] < rivals[round]) ++won;
  }
  return {won, rounds};
}

std::int64_t TriedVariants::median_ns(int variant) const {
  return median_of(of(variant).each_ns);
}

std::int64_t TriedVariants::least_ns(int variant) const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max() / 8;
  for (const std::int64_t ns : of(variant).each_ns)
    if (ns > 0) least = std::min(least, ns);
  return least;
}

std::int64_t TriedVariants::most_ns(int variant) const {
  const auto& each = of(variant).each_ns;
  return each.empty() ? 0 : *std::max_element(each.begin(), each.end());
}

int TriedVariants::challenger_of(int variant) const {
  if (variant != native_ && native_ >= 0) return native_;
  if (variant != 0) return 0;
  int challenger = 0;
  for (std::size_t i = 1; i < variants_.size(); ++i) {
    const std::int64_t ns = median_ns(static_cast<int>(i));
    if (ns > 0 && (challenger == 0 || ns < median_ns(challenger))) challenger = static_cast<int>(i);
  }
  return challenger;
}

}  // namespace weft
