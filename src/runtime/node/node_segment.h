// Makes one segment for the ranks of a node: the first of them creates it and sends its name, the
// others attach it, and all ranks learn whether each has its node's. All must know: otherwise ranks
// of different nodes would make different collective calls.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "shm/segment.h"

namespace weft {

// The bytes that a rank wants of its node's segment and, from the first rank there, its name.
struct SegmentOffer {
  std::int64_t bytes = 0;  // 0: none is wanted there
  SegmentName name{};      // no bytes: it could not be made
};

// Says which rank lacks its segment: this one and no earlier rank, or another.
enum class Lacking : std::uint8_t { nobody, this_rank_first, another };

// lowest: the first rank that lacks it; equal to `ranks` if none does.
inline Lacking lacking(int lowest, int ranks, int own) {
  if (lowest == ranks) return Lacking::nobody;
  return lowest == own ? Lacking::this_rank_first : Lacking::another;
}

// The way in which the ranks communicate. Each call is collective, and returns nothing on all ranks
// alike if they take part in different calls.
class SegmentTalk {
 public:
  virtual ~SegmentTalk() = default;
  // Returns what the first rank of this rank's node sends.
  virtual std::optional<SegmentOffer> of_first(const SegmentOffer& own) = 0;
  virtual std::optional<Lacking> who_lacks(bool this_rank) = 0;
};

// Communicates by the MPI library; for of_first() all ranks must be on one node.
class LibraryTalk final : public SegmentTalk {
 public:
  explicit LibraryTalk(MPI_Comm ranks) : ranks_(ranks) {}
  std::optional<SegmentOffer> of_first(const SegmentOffer& own) override;
  std::optional<Lacking> who_lacks(bool this_rank) override;

 private:
  MPI_Comm ranks_;
};

// Collective over the talk's ranks. node_rank: this rank's. bytes: equal on a node; 0 if this
// rank needs none, and gets nullptr. spare: further bytes, if they can be had. Returns an error on
// all ranks alike, with a message on one of them.
Result<std::shared_ptr<Segment>> agree_on_segment(SegmentTalk& talk, int node_rank,
                                                  std::int64_t bytes, std::int64_t spare);

}  // namespace weft
