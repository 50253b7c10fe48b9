// Finds out on which node each rank runs, and provides shared memory on each node for each
// communicator. When a communicator has been freed, the next communicator of the same ranks reuses
// its memory.
#include "runtime/node/node_memory.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>
#include <vector>

#include "base/equals_shared.h"
#include "base/log.h"
#include "base/repeated.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "library/session_communicators.h"
#include "patterns/tree.h"
#include "runtime/node/node_heaps.h"
#include "schedule/schedule.h"
#include "topo/topology.h"

namespace weft {
namespace {

// Describes where a rank runs. Each rank sends its description to all others.
struct RankLocation {
  int node;    // number of the node, which is the lowest rank on it
  int domain;  // NUMA domain on the node; kNoDomain if the rank may run in several
  Processor processor;
};

// Tells where all ranks of MPI_COMM_WORLD run.
class RankLocations {
 public:
  explicit RankLocations(const std::vector<RankLocation>& all)
      : nodes_(listed(all, &RankLocation::node)),
        domains_(listed(all, &RankLocation::domain), {1, ranks_on_first(), number_of_nodes()}),
        processors_(listed(all, &RankLocation::processor),
                    {1, ranks_on_first(), number_of_nodes()}) {}

  int node(int rank) const { return nodes_.of(rank); }
  int domain(int rank) const { return domains_.at(static_cast<std::size_t>(rank)); }
  Processor processor(int rank) const { return processors_.at(static_cast<std::size_t>(rank)); }

 private:
  template <class Number>
  static std::vector<Number> listed(const std::vector<RankLocation>& all,
                                    Number RankLocation::*what) {
    std::vector<Number> numbers;
    for (const RankLocation& one : all) numbers.push_back(one.*what);
    return numbers;
  }
  std::size_t ranks_on_first() const { return static_cast<std::size_t>(nodes_.ranks_on(0)); }
  std::size_t number_of_nodes() const { return static_cast<std::size_t>(nodes_.count()); }

  Nodes nodes_;
  Repeated<int> domains_;
  Repeated<Processor> processors_;
};

const RankLocations* locations = nullptr;  // set by find_nodes(); nullptr before
// Whether node ranks follow the order of ranks in MPI_COMM_WORLD on several nodes; otherwise they
// are ordered by NUMA domain first.
bool keeps_rank_order = false;

std::vector<int> domains_by_rank(const std::vector<int>& world_ranks) {
  std::vector<int> domains;
  for (const int rank : world_ranks) domains.push_back(locations->domain(rank));
  return domains;
}

// Returns an object equal to `nodes`. All communicators with the same layout of nodes share this
// object.
std::shared_ptr<const Nodes> shared_nodes(Nodes nodes) {
  static auto* all = new EqualsShared<Nodes>;
  return all->get(std::move(nodes));
}

// The message that the first rank of a node sends to the node's other ranks.
struct OfNode {
  int first;  // lowest rank on the node
  int cpus;   // number of CPUs in the topology; 0 if the node has a single NUMA domain
};

// Returns where this rank runs. It is collective over the ranks of a node, of which only the first
// reads the topology.
RankLocation own_location(MPI_Comm here, int rank) {
  int node_rank = 0;
  library_calls.Comm_rank(here, &node_rank);
  Topology machine = node_rank == 0 ? topology_of_domains() : Topology{};
  OfNode told{rank, machine.cpus()};
  library_calls.Bcast(&told, sizeof told, handles.byte, 0, here);
  RankLocation own{told.first, kNoDomain, processor()};
  if (told.cpus == 0) return own;
  machine.numa_of_cpu.resize(static_cast<std::size_t>(told.cpus));
  const auto bytes = static_cast<int>(machine.numa_of_cpu.size() * sizeof machine.numa_of_cpu[0]);
  library_calls.Bcast(machine.numa_of_cpu.data(), bytes, handles.byte, 0, here);
  own.domain = domain_of(machine, allowed_cpus());
  return own;
}

}  // namespace

std::vector<int> world_ranks_of(MPI_Comm comm, int ranks) {
  if (is_of_session(comm)) return std::vector<int>(static_cast<std::size_t>(ranks), -1);
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
  keeps_rank_order = config.reproducible;
  MPI_Comm here;
  const int code = library_calls.Comm_split_type(handles.comm_world, MPI_COMM_TYPE_SHARED, 0,
                                                 handles.info_null, &here);
  if (code != MPI_SUCCESS) return;
  int rank = 0, ranks = 0;
  library_calls.Comm_rank(handles.comm_world, &rank);
  library_calls.Comm_size(handles.comm_world, &ranks);
  constexpr int kBytes = sizeof(RankLocation);
  const RankLocation own = own_location(here, rank);
  std::vector<RankLocation> all(static_cast<std::size_t>(ranks));
  library_calls.Allgather(&own, kBytes, handles.byte, all.data(), kBytes, handles.byte,
                          handles.comm_world);
  locations = new RankLocations(all);
  share_memory_of_processes(here, config, plans);
  library_calls.Comm_free(&here);
}

std::shared_ptr<const Nodes> nodes_of(const std::vector<int>& world_ranks) {
  if (!locations) return nullptr;
  std::vector<int> nodes;
  for (const int rank : world_ranks) nodes.push_back(locations->node(rank));
  Nodes found(nodes);
  if (!found.some_share()) return nullptr;
  // On a single node the ranks need not be ordered by NUMA domain. Algorithms that use the domains
  // explicitly serve that case better.
  if (found.count() == 1 || keeps_rank_order) return shared_nodes(std::move(found));
  return shared_nodes(Nodes(nodes, domains_by_rank(world_ranks)));
}

std::shared_ptr<const Domains> domains_of(const std::vector<int>& world_ranks) {
  const std::vector<int> domains = domains_by_rank(world_ranks);
  const bool some_has_none = std::find(domains.begin(), domains.end(), kNoDomain) != domains.end();
  if (some_has_none) return nullptr;
  auto found = shared_nodes(Domains(domains));
  return found->count() > 1 ? found : nullptr;
}

Processor processor_of(const std::vector<int>& world_ranks) {
  const Processor first = locations->processor(world_ranks[0]);
  const auto differs = [&](int rank) { return locations->processor(rank) != first; };
  return std::any_of(world_ranks.begin(), world_ranks.end(), differs) ? Processor::other : first;
}

namespace {

// Returns the list of these ranks, in this order. All communicators of the same ranks share the
// returned object.
std::shared_ptr<const std::vector<int>> shared_ranks(std::vector<int> world_ranks) {
  static auto* all = new EqualsShared<std::vector<int>>;
  return all->get(std::move(world_ranks));
}

}  // namespace

std::shared_ptr<const std::vector<int>> ranks_that_share(std::vector<int> world_ranks) {
  if (!heaps_are_shared(world_ranks)) return nullptr;
  std::sort(world_ranks.begin(), world_ranks.end());
  return shared_ranks(std::move(world_ranks));
}

std::optional<std::shared_ptr<Segment>> segment_by(SegmentExchange& talk, int rank, int node_rank,
                                                   std::int64_t bytes) {
  static std::atomic<bool> said{false};
  auto segment = agree_on_segment(talk, node_rank, bytes, kRoomForRequests_bytes);
  if (segment) return std::move(*segment);
  const std::string& why = segment.error().message;
  if (!why.empty() && !said.exchange(true))
    say("rank " + std::to_string(rank) + " cannot share memory with the other ranks of its node (" +
        why + "): Weft's messages go through MPI instead");
  return std::nullopt;
}

namespace {

NodeSharedMemory::Group group_of(const Nodes& nodes, int node,
                                 const std::vector<int>& world_ranks) {
  std::vector<int> members;
  for (const int rank : nodes.ranks(node))
    members.push_back(world_ranks[static_cast<std::size_t>(rank)]);
  return {shared_ranks(std::move(members)), nodes.count() == 1};
}

// Exchanges messages between the ranks that agree on shared memory. They are Weft's own
// point-to-point messages, so that the ranks of a node need no communicator of their own.
class NodeExchange final : public SegmentExchange {
 public:
  NodeExchange(const RoomWanted& wanted, int rank, const Nodes& nodes)
      : route_(wanted.route),
        tag_(wanted.tag),
        ranks_(nodes.ranks(nodes.of(rank))),
        node_rank_(nodes.local_rank(rank)),
        all_(wanted.comm) {}

  std::optional<SegmentOffer> of_first(const SegmentOffer& own) override { return told(own); }
  std::optional<Lacking> who_lacks(bool this_rank) override { return all_.who_lacks(this_rank); }

  // Broadcasts a value from the first rank of the node to the node's other ranks. Returns the
  // value; an empty one if a message has failed.
  template <class Said>
  Said told(Said said) const {
    static_assert(std::is_trivially_copyable_v<Said>);
    constexpr int kBytes = sizeof said;
    const int parent = binomial_parent(node_rank_);
    if (parent >= 0 && library_calls.Recv(&said, kBytes, handles.byte, peer(parent), tag_,
                                          route_.comm, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      said = {};
    for (const int child : binomial_children(node_rank_, static_cast<int>(ranks_.size())))
      library_calls.Send(&said, kBytes, handles.byte, peer(child), tag_, route_.comm);
    return said;
  }

 private:
  int peer(int node_rank) const {
    const int rank = ranks_[static_cast<std::size_t>(node_rank)];
    return route_.ranks ? route_.ranks->at(rank) : rank;
  }

  const Route& route_;
  const int tag_;
  const Nodes::Ranks ranks_;
  const int node_rank_;
  LibraryExchange all_;
};

}  // namespace

std::optional<std::shared_ptr<NodeSharedMemory>> shared_memory_on_node(
    const RoomWanted& wanted, int rank, const Nodes& nodes, const std::vector<int>& world_ranks) {
  const int node = nodes.of(rank), node_rank = nodes.local_rank(rank), ranks = nodes.ranks_on(node);
  const std::int64_t buffer_bytes = most_node_bytes(ranks);
  const bool several = nodes.count() > 1;
  auto group = group_of(nodes, node, world_ranks);
  NodeExchange talk(wanted, rank, nodes);
  // Only the first rank of the node knows whether the memory of an earlier communicator of these
  // ranks is unused. It looks that up, and the others take the same memory.
  std::shared_ptr<NodeSharedMemory> room =
      node_rank == 0 && ranks > 1 ? node_shared_memories().take(group) : nullptr;
  if (const auto token = talk.told(room ? room->token() : 0); token != 0 && !room)
    room = node_shared_memories().take(group, token);
  // All ranks have mapped this memory before, so no rank can fail to map it.
  if (room && !several) return room;
  const std::int64_t bytes = NodeSharedMemory::bytes(ranks, buffer_bytes) + wanted.further_bytes;
  auto segment = segment_by(talk, rank, node_rank, room || ranks == 1 ? 0 : bytes);
  if (!segment) return std::nullopt;
  if (!*segment) return room;
  // On several nodes the leaders pass parts of the segment to the MPI library, to send them to
  // other nodes. On a single node the MPI library never needs to access it.
  if (!several) (*segment)->keep_from_library();
  return node_shared_memories().add(std::move(*segment), std::move(group), node_rank, buffer_bytes);
}

}  // namespace weft
