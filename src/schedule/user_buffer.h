// The payload of a user's buffer as one line of bytes, for the verifier: run after run of elements,
// without the holes in and between them.
// Why: elements of datatypes with holes may interleave, and so may blocks, without overlapping.
#pragma once

#include <string>
#include <vector>

#include "schedule/interval_set.h"
#include "schedule/schedule.h"

namespace weft {

class UserBuffer {
 public:
  // The shape must outlive it.
  UserBuffer(const Shape& shape, Buffer buffer);

  struct Found {
    Interval region;      // in payload bytes
    std::string failure;  // empty: the operand lies inside one run, in whole elements of it
  };
  Found find(const Operand& operand) const;

  std::int64_t bytes() const { return bytes_; }

 private:
  struct Run {
    Operand elements;
    std::int64_t lowest = 0;  // origin of the element that lies first in memory
    std::int64_t begin = 0;   // in payload bytes
  };

  Found find_in(const Run& run, const Operand& operand) const;
  std::int64_t lowest_origin(const Operand& operand) const;

  const Shape& shape_;
  std::string outside_;    // the failure
  std::vector<Run> runs_;  // by `lowest`
  std::int64_t bytes_ = 0;
};

}  // namespace weft
