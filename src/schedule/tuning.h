// Tuning: what an algorithm leaves open, so that it can be chosen by measuring
// (select/candidates.h). Why here: a schedule is built for it, like for a Shape. The same on all
// ranks.
#pragma once

#include <cstdint>

namespace weft {

struct Tuning {
  // Longer data are shown in the node's memory in parts of so much per rank. 64 KiB stay in a
  // core's own cache. At least twice what a line holds, at most half of kNodeBytesPerRank.
  std::int64_t part_bytes = 64 * 1024;
  // Of trees: a rank with all its children holds the sum of up to so many ranks of its NUMA domain,
  // or so many domains; kAll: all of them at once.
  static constexpr int kAll = 0;
  int radix = 4;
  int radix_across = kAll;
  // Of trees of messages: so many levels, those with the most messages, are the caller's part
  // (coll/split_tree.h). Each rank's own affair, since the messages are the same.
  int split_levels = 0;

  bool operator==(const Tuning&) const = default;
};

}  // namespace weft
