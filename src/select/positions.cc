// Makes, merges and evaluates positions.
#include "select/positions.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

namespace weft {

void Position::settle() {
  way = tried.preferred();
  period_ns = tried.median_ns(way);
}

std::int64_t Position::ns_of(int of) const {
  const auto at = static_cast<std::size_t>(of);
  if (at < other_ns.size() && other_ns[at] > 0) return other_ns[at];
  return of == way ? period_ns : tried.median_ns(of);
}

void Position::note(int of, std::int64_t ns) {
  other_ns.resize(tried.ways());
  other_ns[static_cast<std::size_t>(of)] = ns;
}

Positions::Positions(std::size_t ways, int native, bool blocking)
    : native_(native), blocking_(blocking), all_{{.tried = TriedWays(ways, native, blocking)}} {}

int Positions::way_near(std::int64_t period_ns) const {
  const auto distance = [&](const Position& position) {
    return std::abs(position.period_ns - period_ns);
  };
  return std::min_element(all_.begin(), all_.end(),
                          [&](const Position& one, const Position& other) {
                            return distance(one) < distance(other);
                          })
      ->way;
}

void Positions::renew(const std::vector<std::int64_t>& period_ns) {
  const std::size_t ways = all_.front().tried.ways();
  std::vector<Position> renewed;
  for (const std::int64_t ns : period_ns)
    renewed.push_back(
        {.way = way_near(ns), .period_ns = ns, .tried = TriedWays(ways, native_, blocking_)});
  all_ = std::move(renewed);
  cycle_ = all_.size();
}

void Positions::leave_out(int way) {
  for (Position& position : all_) position.tried.leave_out(way);
}

int Positions::rival_of(const Position& position, int except) const {
  if (native_ >= 0 && position.way != native_) return position.ns_of(native_) > 0 ? native_ : -1;
  int rival = -1;
  for (int way = 0; way < static_cast<int>(position.tried.ways()); ++way) {
    const std::int64_t ns = position.ns_of(way);
    if (way == position.way || way == except || ns == 0) continue;
    if (rival < 0 || ns < position.ns_of(rival)) rival = way;
  }
  return rival;
}

TriedWays Positions::only(int way, int rival) const {
  TriedWays tried(all_.front().tried.ways(), native_, blocking_);
  for (int other = 0; other < static_cast<int>(tried.ways()); ++other)
    if (other != way && other != rival) tried.leave_out(other);
  return tried;
}

void Positions::merge_alike() {
  const auto [least, most] = std::minmax_element(
      all_.begin(), all_.end(),
      [](const Position& one, const Position& other) { return one.period_ns < other.period_ns; });
  if (most->period_ns * 2 > least->period_ns * 3) return;
  for (const Position& position : all_)
    if (position.way != all_.front().way) return;
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
  const TriedWays& tried = position.tried;
  Found found;
  found.way = position.way;
  const bool was_tried = position.stages > 0;
  for (int way = 0; way < static_cast<int>(tried.ways()); ++way)
    found.median_ns.push_back(was_tried ? tried.median_ns(way) : position.ns_of(way));
  if (!was_tried) return found;
  found.rival = tried.rival_of(position.way);
  std::tie(found.won, found.pairs) = tried.rounds_won(position.way, found.rival);
  return found;
}

}  // namespace

std::vector<Found> Positions::found() const {
  std::vector<Found> found;
  for (const Position& position : all_) found.push_back(found_at(position));
  return found;
}

}  // namespace weft
