// One place per rank in the node's memory for what it shows to the others, part after part.
// What fits travels in the ranks' lines; longer data in two places that take turns, so that a rank
// may write the next part while others still read this one.
#pragma once

#include <algorithm>

#include "schedule/builder.h"

namespace weft {

class NodeSlots {
 public:
  // For parts of up to `bytes`, the same on all ranks.
  NodeSlots(Builder& b, std::int64_t bytes) : b_(b), bytes_(std::min(bytes, kMost_bytes)) {
    if (bytes_ > kLinePayloadBytes) places_ = b.node(2 * b.shape().size * stride());
  }

  std::int64_t bytes() const { return bytes_; }  // of one part, at most
  Location of(int rank) const {
    if (bytes_ <= kLinePayloadBytes) return b_.line(rank);
    return places_ + (turn_ * b_.shape().size + rank) * stride();
  }
  // The other places from now on. Right where each rank has waited for all others' signals of the
  // part before this one: then nobody reads there any more.
  void next() { turn_ = 1 - turn_; }

 private:
  static constexpr std::int64_t kMost_bytes = 64 * 1024;  // what stays in a core's own cache

  std::int64_t stride() const { return (bytes_ + kLineBytes - 1) / kLineBytes * kLineBytes; }

  Builder& b_;
  const std::int64_t bytes_;
  Location places_;
  int turn_ = 0;
};

}  // namespace weft
