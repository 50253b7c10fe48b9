// Maps a user's buffer to its payload bytes, for the verifier: run after run of elements, without
// the gaps in and between them. Elements of datatypes with gaps may interleave without overlapping,
// and so may blocks.
#pragma once

#include <string>
#include <vector>

#include "schedule/interval_set.h"
#include "schedule/schedule.h"

namespace weft {

class UserBuffer {
 public:
  // Finds the payload of a user's buffer. The shape must outlive this object.
  UserBuffer(const Shape& shape, Buffer buffer);

  struct Found {
    Interval region;      // range of the operand in payload bytes
    std::string failure;  // message; empty if the operand is whole elements of one run
  };
  Found find(const Operand& operand) const;

  std::int64_t bytes() const { return bytes_; }

 private:
  struct Run {
    Operand elements;
    std::int64_t lowest = 0;  // origin of the element with the lowest address
    std::int64_t begin = 0;   // payload bytes in front of the run
  };

  Found find_in(const Run& run, const Operand& operand) const;
  std::int64_t lowest_origin(const Operand& operand) const;

  const Shape& shape_;
  std::string outside_;    // message about an operand that lies outside the buffer
  std::vector<Run> runs_;  // sorted by `lowest`
  std::int64_t bytes_ = 0;
};

}  // namespace weft
