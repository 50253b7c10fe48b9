// A set of integers as disjoint half-open intervals, by which the verifier tracks written bytes
// without storing each of them.
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
