// Finding the nodes once, then a segment on each node for each communicator.
#include "runtime/node_memory.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <vector>

#include "base/log.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/node_heaps.h"
#include "schedule/schedule.h"
#include "topo/topology.h"

namespace weft {
namespace {

struct Place {
  int node;    // by the lowest rank there
  int domain;  // as the node counts them; kNoDomain: the rank may run in several
  Processor processor;
};
std::vector<Place> place_of_world_rank;  // empty: not known
bool places_in_order = false;            // of their ranks, whatever the domains

std::vector<Place> places_of(MPI_Comm comm, int ranks) {
  std::vector<Place> places;
  for (const int rank : world_ranks(comm, ranks))
    places.push_back(place_of_world_rank[static_cast<std::size_t>(rank)]);
  return places;
}

// The first makes it, without what is to spare where the system refuses that.
Result<Segment> make_segment(std::int64_t bytes) {
  auto segment = Segment::create(bytes + kRoomForRequests_bytes);
  return segment ? std::move(segment) : Segment::create(bytes);
}

// Collective over the ranks of one node. The first tells the others where it is, and for how much
// it was meant.
Result<Segment> share_segment(MPI_Comm comm, int rank, std::int64_t bytes) {
  struct {
    SegmentName name;
    std::int64_t bytes;
  } offer{{}, bytes};
  auto segment = rank == 0 ? make_segment(bytes) : Result<Segment>(Error{});
  if (rank == 0 && segment) offer.name = segment->name();
  library_calls.Bcast(&offer, static_cast<int>(sizeof offer), handles.byte, 0, comm);
  if (rank == 0) return segment;
  if (offer.name.bytes == 0) return Error{"the first of them could not make it"};
  if (offer.bytes != bytes)
    return Error{"the first of them makes another call, or has other counts"};
  return Segment::attach(offer.name);
}

// Collective over all ranks; empty where this one is alone on its node.
Result<std::optional<Segment>> segment_of_node(MPI_Comm comm, int rank, const Nodes& nodes,
                                               std::int64_t bytes) {
  const bool is_alone = nodes.ranks_on(nodes.of(rank)) == 1;
  MPI_Comm here = comm;
  if (nodes.count() > 1 &&
      library_calls.Comm_split(comm, nodes.of(rank), nodes.place(rank), &here) != MPI_SUCCESS)
    return Error{"the MPI library gives no communicator for a node"};
  Result<Segment> made = Error{};
  if (!is_alone) made = share_segment(here, nodes.place(rank), bytes);
  if (nodes.count() > 1) library_calls.Comm_free(&here);
  if (is_alone) return std::optional<Segment>();
  if (!made) return made.error();
  return std::optional(std::move(*made));
}

// The first rank that failed says why.
bool all_have_it(MPI_Comm comm, int rank, const Result<std::optional<Segment>>& segment) {
  const std::int64_t failed = segment ? 0 : 1;
  std::int64_t up_to_here = 0, all = 0;
  library_calls.Scan(&failed, &up_to_here, 1, handles.int64, handles.sum, comm);
  library_calls.Allreduce(&failed, &all, 1, handles.int64, handles.sum, comm);
  if (failed && up_to_here == 1) say_why_none(rank, segment.error());
  return all == 0;
}

}  // namespace

std::vector<int> world_ranks(MPI_Comm comm, int ranks) {
  MPI_Group group, world;
  std::vector<int> members(static_cast<std::size_t>(ranks)), found(members.size());
  std::iota(members.begin(), members.end(), 0);
  library_calls.Comm_group(comm, &group);
  library_calls.Comm_group(handles.comm_world, &world);
  library_calls.Group_translate_ranks(group, ranks, members.data(), world, found.data());
  for (MPI_Group* made : {&group, &world}) library_calls.Group_free(made);
  return found;
}

void find_nodes(const Config& config, PlanCache& plans) {
  places_in_order = config.reproducible;
  MPI_Comm here;
  const int code = library_calls.Comm_split_type(handles.comm_world, MPI_COMM_TYPE_SHARED, 0,
                                                 handles.info_null, &here);
  if (code != MPI_SUCCESS) return;
  int rank = 0, ranks = 0;
  library_calls.Comm_rank(handles.comm_world, &rank);
  library_calls.Comm_size(handles.comm_world, &ranks);
  constexpr int kBytes = sizeof(Place);
  Place own{rank, domain_of_this_process(), processor()};
  library_calls.Bcast(&own.node, sizeof own.node, handles.byte, 0, here);
  place_of_world_rank.resize(static_cast<std::size_t>(ranks));
  library_calls.Allgather(&own, kBytes, handles.byte, place_of_world_rank.data(), kBytes,
                          handles.byte, handles.comm_world);
  share_memory_of_processes(here, config, plans);
  library_calls.Comm_free(&here);
}

std::shared_ptr<const Nodes> nodes_of(MPI_Comm comm, int ranks) {
  if (place_of_world_rank.empty()) return nullptr;
  std::vector<int> nodes, domains;
  for (const Place& place : places_of(comm, ranks)) {
    nodes.push_back(place.node);
    domains.push_back(place.domain);
  }
  auto found = std::make_shared<const Nodes>(nodes);
  if (!found->some_share()) return nullptr;
  // On one node the algorithms by domains know better.
  if (found->count() == 1 || places_in_order) return found;
  return std::make_shared<const Nodes>(nodes, domains);
}

std::shared_ptr<const Domains> domains_of(MPI_Comm comm, int ranks) {
  std::vector<int> domains;
  for (const Place& place : places_of(comm, ranks)) domains.push_back(place.domain);
  const bool some_has_none = std::find(domains.begin(), domains.end(), kNoDomain) != domains.end();
  if (some_has_none) return nullptr;
  auto found = std::make_shared<const Domains>(domains);
  return found->count() > 1 ? found : nullptr;
}

Processor processor_of(MPI_Comm comm, int ranks) {
  const std::vector<Place> places = places_of(comm, ranks);
  const auto differs = [&](const Place& place) { return place.processor != places[0].processor; };
  return std::any_of(places.begin(), places.end(), differs) ? Processor::other
                                                            : places[0].processor;
}

std::vector<int> ranks_that_share(MPI_Comm comm, int ranks) {
  std::vector<int> members = world_ranks(comm, ranks);
  if (!heaps_are_shared(members)) return {};
  std::sort(members.begin(), members.end());
  return members;
}

void say_why_none(int rank, const Error& error) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    say("rank " + std::to_string(rank) + " cannot share memory with the other ranks of its node (" +
        error.message + "): Weft's messages go through MPI instead");
}

std::optional<SegmentRoom> make_room(MPI_Comm comm, int rank, const Nodes& nodes,
                                     std::int64_t bytes) {
  auto segment = segment_of_node(comm, rank, nodes, bytes);
  if (!all_have_it(comm, rank, segment)) return std::nullopt;
  if (!*segment) return SegmentRoom();
  (**segment).close_to_others();
  return SegmentRoom(std::move(**segment));
}

}  // namespace weft
