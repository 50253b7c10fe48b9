// Tuning: parameters that an algorithm leaves open, so that they can be chosen by measurement
// (select/candidates.h). A schedule is built for a tuning as for a Shape. All ranks must have the
// same.
#pragma once

#include <cstdint>

namespace weft {

struct Tuning {
  // Longer data are shown in the node's memory in chunks of this size per rank. 64 KiB stay in a
  // core's own cache. The minimum is twice the payload of a slot, the maximum half of
  // kNodeBytesPerRank.
  std::int64_t chunk_bytes = 64 * 1024;
  // The radices of trees: a rank with its children holds the sum of at most so many ranks of its
  // NUMA domain, or of so many domains; kAll: of all.
  static constexpr int kAll = 0;
  int radix = 4;
  int radix_across = kAll;
  // The number of levels with the most messages that are the caller's part in trees of messages
  // (coll/split_tree.h). Ranks may differ in it, since the messages are the same.
  int split_levels = 0;

  bool operator==(const Tuning&) const = default;
};

}  // namespace weft
