// How the ranks of a node come to one segment: the first of them makes it and tells its name, the
// others attach it, and all ranks learn whether each has its node's. Why all: what follows on one
// node only would be another collective than on the others.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "shm/segment.h"

namespace weft {

// What a rank wants of the segment of its node, and, of the first rank there, where that lies.
struct SegmentOffer {
  std::int64_t bytes = 0;  // 0: none is wanted there
  SegmentName name{};      // no bytes: it could not be made
};

// Which rank lacks what it should have: this one and none before it, or another as well.
enum class Lacking : std::uint8_t { nobody, this_rank_first, another };

// lowest: the first rank that lacks it; `ranks`, so many as there are, if none does.
inline Lacking lacking(int lowest, int ranks, int own) {
  if (lowest == ranks) return Lacking::nobody;
  return lowest == own ? Lacking::this_rank_first : Lacking::another;
}

// In which way the ranks tell each other. Each call is collective; no value, on all ranks alike:
// they take part in different calls.
class SegmentTalk {
 public:
  virtual ~SegmentTalk() = default;
  // What the first rank of this rank's node says.
  virtual std::optional<SegmentOffer> of_first(const SegmentOffer& own) = 0;
  virtual std::optional<Lacking> who_lacks(bool this_rank) = 0;
};

// By the MPI library; of_first() of ranks that are all on one node.
class LibraryTalk final : public SegmentTalk {
 public:
  explicit LibraryTalk(MPI_Comm ranks) : ranks_(ranks) {}
  std::optional<SegmentOffer> of_first(const SegmentOffer& own) override;
  std::optional<Lacking> who_lacks(bool this_rank) override;

 private:
  MPI_Comm ranks_;
};

// Collective over the talk's ranks. place: of this rank on its node. bytes: alike on a node; 0
// where this rank needs none, and gets nullptr. spare: further bytes, if they are to be had. An
// error on all ranks alike, with a message on one of them.
Result<std::shared_ptr<Segment>> agree_on_segment(SegmentTalk& talk, int place, std::int64_t bytes,
                                                  std::int64_t spare);

}  // namespace weft
