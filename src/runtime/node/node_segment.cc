// Lets the ranks of a node share a segment, by two exchanges. The first one sends the segments'
// names. The second one tells the lowest rank that could not map its node's segment.
#include "runtime/node/node_segment.h"

#include <utility>

#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "shm/known_segments.h"

namespace weft {
namespace {

// Creates a segment. Omits the spare bytes if the system refuses them.
Result<Segment> make_segment(std::int64_t bytes, std::int64_t spare) {
  auto segment = Segment::create(bytes + spare);
  return segment || spare == 0 ? std::move(segment) : Segment::create(bytes);
}

Result<Segment> attach_segment(const SegmentOffer& first, std::int64_t bytes) {
  if (first.bytes != bytes)
    return Error{"the first of them makes another call, or has other counts"};
  if (first.name.bytes == 0) return Error{"the first of them could not make it"};
  return Segment::attach(first.name);
}

}  // namespace

std::optional<SegmentOffer> LibraryExchange::of_first(const SegmentOffer& own) {
  SegmentOffer first = own;
  library_calls.Bcast(&first, static_cast<int>(sizeof first), handles.byte, 0, ranks_);
  return first;
}

std::optional<Lacking> LibraryExchange::who_lacks(bool this_rank) {
  int rank = 0, ranks = 0;
  library_calls.Comm_rank(ranks_, &rank);
  library_calls.Comm_size(ranks_, &ranks);
  const std::int64_t own = this_rank ? -rank : -ranks;
  std::int64_t greatest = -ranks;
  library_calls.Allreduce(&own, &greatest, 1, handles.int64, handles.max, ranks_);
  return lacking(static_cast<int>(-greatest), ranks, rank);
}

Result<std::shared_ptr<Segment>> agree_on_segment(SegmentExchange& talk, int node_rank,
                                                  std::int64_t bytes, std::int64_t spare) {
  const bool makes = node_rank == 0 && bytes > 0;
  Result<Segment> segment = Error{};
  if (makes) segment = make_segment(bytes, spare);
  const auto first = talk.of_first({bytes, makes && segment ? segment->name() : SegmentName{}});
  if (!first) return Error{};
  if (!makes && bytes > 0) segment = attach_segment(*first, bytes);
  const auto who = talk.who_lacks(bytes > 0 && !segment);
  if (who == Lacking::this_rank_first) return segment.error();
  if (who != Lacking::nobody) return Error{};
  if (bytes == 0) return std::shared_ptr<Segment>();
  segment->close_to_others();
  auto agreed = std::make_shared<Segment>(std::move(*segment));
  known_segments().add(agreed);
  return agreed;
}

}  // namespace weft
