// UserBuffer: numbers the data bytes of a user's buffer without the gaps in and between elements,
// so that the verifier can say which of them were written. The elements of datatypes with gaps may
// interleave without overlapping, and so may blocks.
#pragma once

#include <string>
#include <vector>

#include "schedule/interval_set.h"
#include "schedule/schedule.h"

namespace weft {

class UserBuffer {
 public:
  // Finds the data of a user's buffer. The shape must outlive this object.
  UserBuffer(const Shape& shape, Buffer buffer);

  struct Found {
    Interval region;  // range of the operand among the numbered data bytes
    // Says why the operand was not found; empty if it consists of whole elements of one run.
    std::string failure;
  };
  Found find(const Operand& operand) const;

  std::int64_t bytes() const { return bytes_; }

 private:
  struct Run {
    Operand elements;
    std::int64_t lowest = 0;  // offset of the element with the lowest address
    std::int64_t begin = 0;   // number of data bytes in all runs before this one
  };

  Found find_in(const Run& run, const Operand& operand) const;
  std::int64_t lowest_origin(const Operand& operand) const;

  const Shape& shape_;
  std::string outside_;    // error message for an operand that lies outside the buffer
  std::vector<Run> runs_;  // sorted by `lowest`
  std::int64_t bytes_ = 0;
};

}  // namespace weft
