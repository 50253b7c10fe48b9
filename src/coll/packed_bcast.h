// The data of a bcast as a run of bytes, so that it can be cut anywhere.
// Why bytes: ranks may describe the same data by different datatypes, so that only the number of
// bytes is the same everywhere. Data that may not be moved as bytes is packed into temp first.
#pragma once

#include "schedule/builder.h"

namespace weft {

class PackedBcast {
 public:
  explicit PackedBcast(Builder& builder);

  Location at(std::int64_t byte) const { return origin_ + byte; }
  void pack();    // on the root, before the first send
  void unpack();  // elsewhere, after the last receive

 private:
  bool is_packed() const { return origin_.buffer == Buffer::temp; }

  Builder& builder_;
  Operand elements_;
  Operand bytes_;
  Location origin_;
};

}  // namespace weft
