// Implements Positions: creates, merges and evaluates the positions of a cycle of calls.
#include "select/positions.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

namespace weft {

void Position::settle() {
  variant = tried.preferred();
  period_ns = tried.median_ns(variant);
}

std::int64_t Position::ns_of(int of) const {
  const auto at = static_cast<std::size_t>(of);
  if (at < other_ns.size() && other_ns[at] > 0) return other_ns[at];
  return of == variant ? period_ns : tried.median_ns(of);
}

void Position::note(int of, std::int64_t ns) {
  other_ns.resize(tried.variants());
  other_ns[static_cast<std::size_t>(of)] = ns;
}

Positions::Positions(std::size_t variants, int native, bool blocking)
    : native_(native),
      blocking_(blocking),
      all_{{.tried = TriedVariants(variants, native, blocking)}} {}

int Positions::variant_near(std::int64_t period_ns) const {
  const auto distance = [&](const Position& position) {
    return std::abs(position.period_ns - period_ns);
  };
  return std::min_element(all_.begin(), all_.end(),
                          [&](const Position& one, const Position& other) {
                            return distance(one) < distance(other);
                          })
      ->variant;
}

void Positions::renew(const std::vector<std::int64_t>& period_ns) {
  const std::size_t variants = all_.front().tried.variants();
  std::vector<Position> renewed;
  for (const std::int64_t ns : period_ns)
    renewed.push_back({.variant = variant_near(ns),
                       .period_ns = ns,
                       .tried = TriedVariants(variants, native_, blocking_)});
  all_ = std::move(renewed);
  cycle_ = all_.size();
}

void Positions::leave_out(int variant) {
  for (Position& position : all_) position.tried.leave_out(variant);
}

int Positions::challenger_of(const Position& position, int except) const {
  if (native_ >= 0 && position.variant != native_)
    return position.ns_of(native_) > 0 ? native_ : -1;
  int challenger = -1;
  for (int variant = 0; variant < static_cast<int>(position.tried.variants()); ++variant) {
    const std::int64_t ns = position.ns_of(variant);
    if (variant == position.variant || variant == except || ns == 0) continue;
    if (challenger < 0 || ns < position.ns_of(challenger)) challenger = variant;
  }
  return challenger;
}

TriedVariants Positions::only(int variant, int challenger) const {
  TriedVariants tried(all_.front().tried.variants(), native_, blocking_);
  for (int other = 0; other < static_cast<int>(tried.variants()); ++other)
    if (other != variant && other != challenger) tried.leave_out(other);
  return tried;
}

void Positions::merge_alike() {
  const auto [least, most] = std::minmax_element(
      all_.begin(), all_.end(),
      [](const Position& one, const Position& other) { return one.period_ns < other.period_ns; });
  if (most->period_ns * 2 > least->period_ns * 3) return;
  for (const Position& position : all_)
    if (position.variant != all_.front().variant) return;
  all_.front().period_ns = mean_period_ns();
  all_.erase(all_.begin() + 1, all_.end());
  cycle_ = 1;
}

std::int64_t Positions::mean_period_ns() const {
  std::int64_t sum_ns = 0;
  for (const Position& position : all_) sum_ns += position.period_ns;
  return sum_ns / static_cast<std::int64_t>(cycle_);
}

bool Positions::has_moved(std::size_t position, std::int64_t now_ns) const {
  const std::int64_t then_ns = all_[position].period_ns;
  const std::int64_t most = std::max(now_ns, then_ns), least = std::min(now_ns, then_ns);
  return most * 10 > least * 13 && (most - least) * 10 > mean_period_ns();
}

bool Positions::is_all_done() const {
  return std::all_of(all_.begin(), all_.end(),
                     [](const Position& position) { return position.is_done; });
}

int Positions::slots_tried() const {
  int slots = 0;
  for (const Position& position : all_) slots += position.slots;
  return slots;
}

namespace {

Found found_at(const Position& position) {
  const TriedVariants& tried = position.tried;
  Found found;
  found.variant = position.variant;
  const bool was_tried = position.stages > 0;
  for (int variant = 0; variant < static_cast<int>(tried.variants()); ++variant)
    found.median_ns.push_back(was_tried ? tried.median_ns(variant) : position.ns_of(variant));
  if (!was_tried) return found;
  found.challenger = tried.challenger_of(position.variant);
  std::tie(found.won, found.pairs) = tried.rounds_won(position.variant, found.challenger);
  found.was_left = tried.is_slow(found.challenger) && found.won == found.pairs;
  return found;
}

}  // namespace

std::vector<Found> Positions::found() const {
  std::vector<Found> found;
  for (const Position& position : all_) found.push_back(found_at(position));
  return found;
}

}  // namespace weft
