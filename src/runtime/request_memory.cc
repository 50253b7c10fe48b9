// As long as there is room, one exchange shows that all ranks of each node take the same piece.
// Where there is none, the node's first rank makes a segment beforehand and names it in that
// exchange; a second one tells who could not map it.
#include "runtime/request_memory.h"

#include <algorithm>

namespace weft {
namespace {

struct Offer {
  std::int64_t bytes = 0;  // of the piece; below 0: there is no room for so many
  SegmentName name{};      // of a first rank's new segment; no bytes: it could not make one
};

// The first of those on this rank's node.
int first_here(const Communicator& c) {
  return c.nodes->ranks(c.nodes->of(c.rank)).front();
}

bool are_alike_on_each_node(const std::vector<Offer>& offers, const Nodes& nodes) {
  for (int node = 0; node < nodes.count(); ++node)
    for (const int rank : nodes.ranks(node))
      if (offers[static_cast<std::size_t>(rank)].bytes !=
          offers[static_cast<std::size_t>(nodes.ranks(node).front())].bytes)
        return false;
  return true;
}

// lacking: this rank's error. The first rank that failed says why.
bool all_have_it(Meeting& meeting, const Error* lacking) {
  const int rank = meeting.communicator().rank;
  const auto have_it = meeting.exchange(lacking ? 'n' : 'y');
  if (!have_it) return false;
  const auto failed = std::find(have_it->begin(), have_it->end(), 'n');
  if (failed - have_it->begin() == rank) say_why_none(rank, *lacking);
  return failed == have_it->end();
}

bool take_new_segment(Meeting& meeting, const SegmentName& name, Result<Segment> segment) {
  Communicator& c = meeting.communicator();
  if (c.rank != first_here(c) && name.bytes > 0) segment = Segment::attach(name);
  if (!all_have_it(meeting, segment ? nullptr : &segment.error())) return false;
  segment->close_to_others();
  c.room = SegmentRoom(std::move(*segment));
  return true;
}

bool agree_on_room(Meeting& meeting, std::int64_t bytes) {
  const Communicator& c = meeting.communicator();
  const bool fits = c.room.fits(bytes);
  Result<Segment> fresh = Error{"the first of them could not make it"};
  if (!fits && c.rank == first_here(c)) fresh = Segment::create(bytes + kRoomForRequests_bytes);
  const auto offers =
      meeting.exchange(Offer{fits ? bytes : -bytes, fresh ? fresh->name() : SegmentName{}});
  if (!offers || !are_alike_on_each_node(*offers, *c.nodes)) return false;
  const auto has_room = [](const Offer& offer) { return offer.bytes >= 0; };
  if (std::all_of(offers->begin(), offers->end(), has_room)) return true;
  if (fits) return all_have_it(meeting, nullptr);
  const Offer& first = (*offers)[static_cast<std::size_t>(first_here(c))];
  return take_new_segment(meeting, first.name, std::move(fresh));
}

}  // namespace

std::optional<std::unique_ptr<NodeMemory>> memory_of_request(Meeting& meeting,
                                                             std::int64_t window_bytes) {
  Communicator& c = meeting.communicator();
  const int node = c.nodes->of(c.rank), ranks = c.nodes->ranks_on(node);
  const bool is_alone = ranks == 1;
  if (!agree_on_room(meeting, is_alone ? 0 : NodeWindows::bytes(ranks, window_bytes)))
    return std::nullopt;
  if (is_alone) return nullptr;
  return std::make_unique<NodeMemory>(c.room, c.nodes->place(c.rank), ranks, window_bytes);
}

}  // namespace weft
