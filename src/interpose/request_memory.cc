// As long as there is room, one exchange shows that all ranks take the same piece. Else rank 0
// makes a segment beforehand and names it in that exchange; a second one tells who could not map
// it.
#include "interpose/request_memory.h"

#include <algorithm>

namespace weft::interpose {
namespace {

struct Offer {
  std::int64_t bytes = 0;  // of the piece
  SegmentName name{};      // rank 0's, where there is no room; no bytes: it could not make one
};

// The first rank that failed says why.
bool all_have_it(Meeting& meeting, const Result<Segment>& segment) {
  const int rank = meeting.communicator().rank;
  const auto have_it = meeting.exchange(segment ? 'y' : 'n');
  if (!have_it) return false;
  const auto failed = std::find(have_it->begin(), have_it->end(), 'n');
  if (failed - have_it->begin() == rank) say_why_none(rank, segment.error());
  return failed == have_it->end();
}

bool make_room(Meeting& meeting, const Offer& first, Result<Segment> segment) {
  const bool is_first = meeting.communicator().rank == 0;
  if (!is_first && first.name.bytes > 0) segment = Segment::attach(first.name);
  if (!all_have_it(meeting, segment)) return false;
  segment->close_to_others();
  meeting.communicator().room = SegmentRoom(std::move(*segment));
  return true;
}

bool agree_on_room(Meeting& meeting, std::int64_t bytes) {
  const Communicator& c = meeting.communicator();
  const bool fits = c.room.fits(bytes);
  Result<Segment> fresh = Error{"the first of them could not make it"};
  if (!fits && c.rank == 0) fresh = Segment::create(bytes + kRoomForRequests_bytes);
  const auto offers = meeting.exchange(Offer{bytes, fresh ? fresh->name() : SegmentName{}});
  if (!offers) return false;
  for (const Offer& offer : *offers)
    if (offer.bytes != bytes) return false;
  return fits || make_room(meeting, offers->front(), std::move(fresh));
}

}  // namespace

std::unique_ptr<NodeMemory> memory_of_request(Meeting& meeting, std::int64_t window_bytes) {
  Communicator& c = meeting.communicator();
  if (!agree_on_room(meeting, NodeWindows::bytes(c.size, window_bytes))) return nullptr;
  return std::make_unique<NodeMemory>(c.room, c.rank, c.size, window_bytes);
}

}  // namespace weft::interpose
