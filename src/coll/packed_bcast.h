// PackedBcast: the data of a bcast as contiguous bytes, which can be divided anywhere. Elements
// cannot, since ranks may describe the same data by different datatypes. Data with gaps are packed
// into a temporary buffer first.
#pragma once

#include "schedule/builder.h"

namespace weft {

class PackedBcast {
 public:
  explicit PackedBcast(Builder& builder);

  Location at(std::int64_t byte) const { return origin_ + byte; }
  void pack();    // must be called on the root before the first send
  void unpack();  // must be called on other ranks after the last receive

 private:
  bool is_packed() const { return origin_.buffer == Buffer::temp; }

  Builder& builder_;
  Operand elements_;
  Operand bytes_;
  Location origin_;
};

}  // namespace weft
