// Creates one shared memory segment for the ranks of a node. The first rank of the node creates it
// and sends its name, and the other ranks attach it. Then all ranks of the job learn whether every
// rank has its segment. If only some ranks knew that a segment is missing, ranks would make
// different collective calls.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "shm/segment.h"

namespace weft {

// The size of the segment that a rank wants. From the first rank of the node, also the name of the
// segment.
struct SegmentOffer {
  std::int64_t bytes = 0;  // 0 if the node needs no segment
  SegmentName name{};      // empty if the segment could not be created
};

// Says which rank is the lowest that has no segment although it needs one: no rank, this rank, or
// another one.
enum class Lacking : std::uint8_t { nobody, this_rank_first, another };

// Returns whether the lowest rank without a segment is nobody, this rank, or another one. lowest:
// that rank; equal to `ranks` if no rank lacks its segment. own: this rank.
inline Lacking lacking(int lowest, int ranks, int own) {
  if (lowest == ranks) return Lacking::nobody;
  return lowest == own ? Lacking::this_rank_first : Lacking::another;
}

// SegmentExchange makes the exchanges between ranks that agree_on_segment() needs. All of its
// functions are collective. They return nullopt on all ranks if the ranks have called different
// functions.
class SegmentExchange {
 public:
  virtual ~SegmentExchange() = default;
  // Returns the offer of the first rank on this rank's node.
  virtual std::optional<SegmentOffer> of_first(const SegmentOffer& own) = 0;
  virtual std::optional<Lacking> who_lacks(bool this_rank) = 0;
};

// Makes the exchanges of SegmentExchange by collectives of the MPI library. To use of_first(), all
// ranks of the communicator must be on one node.
class LibraryExchange final : public SegmentExchange {
 public:
  explicit LibraryExchange(MPI_Comm ranks) : ranks_(ranks) {}
  std::optional<SegmentOffer> of_first(const SegmentOffer& own) override;
  std::optional<Lacking> who_lacks(bool this_rank) override;

 private:
  MPI_Comm ranks_;
};

// Creates a segment on each node, and returns that of this rank's node; collective over the ranks
// of `talk`. node_rank: this rank's number on its node. bytes: the required size, equal on all
// ranks of a node; 0 if this node needs no segment, and the result is nullptr. spare: additional
// bytes, which are omitted if the system refuses them. Returns an error on all ranks if any rank
// lacks its segment; one rank's error contains a message.
Result<std::shared_ptr<Segment>> agree_on_segment(SegmentExchange& talk, int node_rank,
                                                  std::int64_t bytes, std::int64_t spare);

}  // namespace weft
