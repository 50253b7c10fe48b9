// A set of integers as disjoint half-open intervals.
// Why: the verifier keeps track of what has been written, byte by byte, without a byte each.
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
  bool contains(Interval all) const;  // an empty one is contained
  bool intersects(Interval any) const;

 private:
  std::map<std::int64_t, std::int64_t> end_by_begin_;
};

}  // namespace weft
