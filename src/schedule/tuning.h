// Tuning: parameters of algorithms that are chosen by measurement (select/candidates.h). All ranks
// must use the same values, except for split_levels.
#pragma once

#include <cstdint>

namespace weft {

struct Tuning {
  // Bytes per rank of one chunk: longer data pass through the node's shared memory in chunks. 64
  // KiB stay in a core's own cache. The minimum is twice the payload of a slot, the maximum half of
  // kNodeBytesPerRank.
  std::int64_t chunk_bytes = 64 * 1024;
  // Value of a radix without a limit. In a tree of a node's ranks, a rank and its children together
  // reduce the operands of at most `radix` ranks in a NUMA domain, or of at most `radix_across`
  // domains.
  static constexpr int kAll = 0;
  int radix = 4;
  int radix_across = kAll;
  // The number of levels of a tree, counted from its leaves, whose messages the application's
  // thread sends and receives (coll/split_tree.h). It may differ between ranks, since the messages
  // are the same.
  int split_levels = 0;

  bool operator==(const Tuning&) const = default;
};

}  // namespace weft
