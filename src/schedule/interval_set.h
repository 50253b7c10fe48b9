// IntervalSet: a set of integers stored as disjoint half-open intervals. The verifier uses it to
// track which bytes were written, without storing each one.
#pragma once

#include <cstdint>
#include <map>

namespace weft {

struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool empty() const { return begin >= end; }
};

class IntervalSet {
 public:
  void add(Interval added);
  void remove(Interval removed);
  bool contains(Interval all) const;  // true for an empty interval
  bool intersects(Interval any) const;

 private:
  std::map<std::int64_t, std::int64_t> end_by_begin_;
};

}  // namespace weft
