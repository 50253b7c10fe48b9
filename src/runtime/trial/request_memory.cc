// Allocates shared memory for persistent requests. If the communicator's segment has space, one
// exchange verifies that all ranks of each node take the same piece of it. Otherwise the ranks
// create another segment.
#include "runtime/trial/request_memory.h"

#include <algorithm>

namespace weft {
namespace {

bool are_alike_on_each_node(const std::vector<std::int64_t>& wanted, const Nodes& nodes) {
  const auto of = [&](int rank) { return wanted[static_cast<std::size_t>(rank)]; };
  for (int node = 0; node < nodes.count(); ++node)
    for (const int rank : nodes.ranks(node))
      if (of(rank) != of(nodes.ranks(node).front())) return false;
  return true;
}

// Makes the exchanges in which ranks agree on a segment, by Weft's own collectives.
class InternalTalk final : public SegmentExchange {
 public:
  explicit InternalTalk(InternalCollective& internal_collective)
      : internal_collective_(internal_collective), c_(internal_collective.communicator()) {}

  std::optional<SegmentOffer> of_first(const SegmentOffer& own) override {
    const auto all = internal_collective_.exchange(own);
    if (!all) return std::nullopt;
    return (*all)[static_cast<std::size_t>(c_.nodes->ranks(c_.nodes->of(c_.rank)).front())];
  }

  std::optional<Lacking> who_lacks(bool this_rank) override {
    const auto all = internal_collective_.exchange(this_rank ? 'n' : 'y');
    if (!all) return std::nullopt;
    const auto lowest = std::find(all->begin(), all->end(), 'n') - all->begin();
    return lacking(static_cast<int>(lowest), c_.size, c_.rank);
  }

 private:
  InternalCollective& internal_collective_;
  const Communicator& c_;
};

bool agree_on_room(InternalCollective& internal_collective, std::int64_t bytes) {
  Communicator& c = internal_collective.communicator();
  const bool fits = c.room.fits(bytes);
  const auto wanted = internal_collective.exchange(fits ? bytes : -bytes);
  if (!wanted || !are_alike_on_each_node(*wanted, *c.nodes)) return false;
  const auto has_room = [](std::int64_t of_rank) { return of_rank >= 0; };
  if (std::all_of(wanted->begin(), wanted->end(), has_room)) return true;
  InternalTalk talk(internal_collective);
  auto segment = segment_by(talk, c.rank, c.nodes->local_rank(c.rank), fits ? 0 : bytes);
  if (segment && *segment) c.room = SegmentAllocator(std::move(*segment));
  return segment.has_value();
}

}  // namespace

std::optional<std::unique_ptr<NodeMemory>> memory_of_request(
    InternalCollective& internal_collective, std::int64_t buffer_bytes) {
  Communicator& c = internal_collective.communicator();
  const int node = c.nodes->of(c.rank), ranks = c.nodes->ranks_on(node);
  const bool is_alone = ranks == 1;
  if (!agree_on_room(internal_collective, is_alone ? 0 : NodeBuffers::bytes(ranks, buffer_bytes)))
    return std::nullopt;
  if (is_alone) return nullptr;
  struct Own {
    std::shared_ptr<std::byte> memory;
    NodeBuffers node_buffers;
  };
  auto memory = c.room.take(NodeBuffers::bytes(ranks, buffer_bytes));
  std::byte* const begin = memory.get();
  const std::shared_ptr<Own> own(
      new Own{std::move(memory), {begin, c.nodes->local_rank(c.rank), ranks, buffer_bytes}});
  return std::make_unique<NodeMemory>(std::shared_ptr<NodeBuffers>(own, &own->node_buffers));
}

}  // namespace weft
