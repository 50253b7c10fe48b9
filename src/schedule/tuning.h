// Tuning: parameters of algorithms that are chosen by measurement (select/candidates.h). A schedule
// is built for a Shape and a Tuning. All ranks must use the same values.
#pragma once

#include <cstdint>

namespace weft {

struct Tuning {
  // Bytes per rank of a chunk in which longer data pass through the node's memory. 64 KiB stay in a
  // core's own cache. The minimum is twice the payload of a slot, the maximum half of
  // kNodeBytesPerRank.
  std::int64_t chunk_bytes = 64 * 1024;
  // Value of a radix that sets no limit. A radix belongs to a tree of ranks: a rank and its
  // children together reduce at most `radix` ranks of a NUMA domain, or `radix_across` domains.
  static constexpr int kAll = 0;
  int radix = 4;
  int radix_across = kAll;
  // The number of levels of a tree, next to its leaves, whose messages the calling thread carries
  // out (coll/split_tree.h). It may differ between ranks, since the messages are the same.
  int split_levels = 0;

  bool operator==(const Tuning&) const = default;
};

}  // namespace weft
