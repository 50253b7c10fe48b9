// Creates one shared memory segment for the ranks of a node: the first rank creates it and sends
// its name, the others attach it, and all ranks learn whether each has its node's segment. All must
// know, because ranks of different nodes would otherwise make different collective calls.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "shm/segment.h"

namespace weft {

// The size of the segment that a rank wants and, from the first rank on the node, the segment's
// name.
struct SegmentOffer {
  std::int64_t bytes = 0;  // 0 if the node needs no segment
  SegmentName name{};      // empty if the segment could not be created
};

// Tells which rank is the first that lacks its segment: none does, this rank, or another one.
enum class Lacking : std::uint8_t { nobody, this_rank_first, another };

// Returns which rank is the first that lacks its segment, as seen by rank `own`. lowest: the number
// of that rank; `ranks` if no rank lacks its segment.
inline Lacking lacking(int lowest, int ranks, int own) {
  if (lowest == ranks) return Lacking::nobody;
  return lowest == own ? Lacking::this_rank_first : Lacking::another;
}

// SegmentExchange: the exchanges between ranks that agree_on_segment() needs. Each function is
// collective, and returns nullopt on all ranks if they have called different functions.
class SegmentExchange {
 public:
  virtual ~SegmentExchange() = default;
  // Returns the offer of the first rank on this rank's node.
  virtual std::optional<SegmentOffer> of_first(const SegmentOffer& own) = 0;
  virtual std::optional<Lacking> who_lacks(bool this_rank) = 0;
};

// Makes the exchanges of SegmentExchange by the MPI library. For of_first() all ranks must be on
// one node.
class LibraryExchange final : public SegmentExchange {
 public:
  explicit LibraryExchange(MPI_Comm ranks) : ranks_(ranks) {}
  std::optional<SegmentOffer> of_first(const SegmentOffer& own) override;
  std::optional<Lacking> who_lacks(bool this_rank) override;

 private:
  MPI_Comm ranks_;
};

// Creates a segment for this rank's node, and returns it. Collective over the ranks of `talk`.
// node_rank: this rank's number on its node. bytes: equal on all ranks of a node; 0 if this node
// needs none, which returns nullptr. spare: further bytes that are added if the system allows.
// Returns an error on all ranks, with a message on one of them, if some rank lacks its segment.
Result<std::shared_ptr<Segment>> agree_on_segment(SegmentExchange& talk, int node_rank,
                                                  std::int64_t bytes, std::int64_t spare);

}  // namespace weft
