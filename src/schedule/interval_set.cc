// Implements IntervalSet. It merges adjacent intervals, so that an interval which the set contains
// always lies inside a single entry.
#include "schedule/interval_set.h"

#include <algorithm>
#include <iterator>

namespace weft {

void IntervalSet::add(Interval added) {
  if (added.empty()) return;
  auto at = end_by_begin_.upper_bound(added.begin);
  if (at != end_by_begin_.begin() && std::prev(at)->second >= added.begin) --at;
  while (at != end_by_begin_.end() && at->first <= added.end) {
    added.begin = std::min(added.begin, at->first);
    added.end = std::max(added.end, at->second);
    at = end_by_begin_.erase(at);
  }
  end_by_begin_.emplace(added.begin, added.end);
}

void IntervalSet::remove(Interval removed) {
  if (removed.empty()) return;
  auto at = end_by_begin_.upper_bound(removed.begin);
  if (at != end_by_begin_.begin() && std::prev(at)->second > removed.begin) --at;
  while (at != end_by_begin_.end() && at->first < removed.end) {
    const Interval before{at->first, removed.begin};
    const Interval after{removed.end, at->second};
    at = end_by_begin_.erase(at);
    if (!before.empty()) end_by_begin_.emplace(before.begin, before.end);
    if (!after.empty()) end_by_begin_.emplace(after.begin, after.end);
  }
}

bool IntervalSet::contains(Interval all) const {
  if (all.empty()) return true;
  auto at = end_by_begin_.upper_bound(all.begin);
  return at != end_by_begin_.begin() && std::prev(at)->second >= all.end;
}

bool IntervalSet::intersects(Interval any) const {
  if (any.empty()) return false;
  auto at = end_by_begin_.upper_bound(any.begin);
  if (at != end_by_begin_.begin() && std::prev(at)->second > any.begin) return true;
  return at != end_by_begin_.end() && at->first < any.end;
}

}  // namespace weft
