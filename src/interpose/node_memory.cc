// Finding the node once, then a segment for each communicator that lies within it.
#include "interpose/node_memory.h"

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "interpose/generated/library_calls.h"
#include "interpose/node_heaps.h"
#include "schedule/schedule.h"
#include "transport/mpi/handles.h"

namespace weft::interpose {
namespace {

MPI_Group node_group;
bool node_known = false;

// The ranks' numbers on this node; empty where not all are on it.
std::vector<int> ranks_of_node(MPI_Comm comm, int ranks) {
  if (!node_known) return {};
  MPI_Group group;
  if (library_calls.Comm_group(comm, &group) != MPI_SUCCESS) return {};
  std::vector<int> members(static_cast<std::size_t>(ranks)), here(members.size());
  for (int rank = 0; rank < ranks; ++rank) members[static_cast<std::size_t>(rank)] = rank;
  const int code =
      library_calls.Group_translate_ranks(group, ranks, members.data(), node_group, here.data());
  library_calls.Group_free(&group);
  const bool all = std::find(here.begin(), here.end(), MPI_UNDEFINED) == here.end();
  return code == MPI_SUCCESS && all ? here : std::vector<int>{};
}

// Rank 0 makes it and tells the others where it is, and for how much it was meant.
Result<Segment> share_segment(MPI_Comm comm, int rank, std::int64_t bytes) {
  struct {
    SegmentName name;
    std::int64_t bytes;
  } offer{{}, bytes};
  auto segment = rank == 0 ? Segment::create(bytes) : Result<Segment>(Error{});
  if (rank == 0 && segment) offer.name = segment->name();
  library_calls.Bcast(&offer, static_cast<int>(sizeof offer), handles.byte, 0, comm);
  if (rank == 0) return segment;
  if (offer.name.bytes == 0) return Error{"rank 0 could not make it"};
  if (offer.bytes != bytes) return Error{"rank 0 makes another call, or has other counts"};
  return Segment::attach(offer.name);
}

// The first rank that failed says why, once in a program.
bool all_have_it(MPI_Comm comm, int rank, const Result<Segment>& segment) {
  static std::atomic<bool> said{false};
  const std::int64_t failed = segment ? 0 : 1;
  std::int64_t up_to_here = 0, all = 0;
  library_calls.Scan(&failed, &up_to_here, 1, handles.int64, handles.sum, comm);
  library_calls.Allreduce(&failed, &all, 1, handles.int64, handles.sum, comm);
  if (failed && up_to_here == 1 && !said.exchange(true))
    say("rank " + std::to_string(rank) + " cannot share memory with the other ranks of its node (" +
        segment.error().message + "): Weft's messages go through MPI instead");
  return all == 0;
}

}  // namespace

void find_node() {
  MPI_Comm node;
  const int code = library_calls.Comm_split_type(handles.comm_world, MPI_COMM_TYPE_SHARED, 0,
                                                 handles.info_null, &node);
  if (code != MPI_SUCCESS) return;
  node_known = library_calls.Comm_group(node, &node_group) == MPI_SUCCESS;
  int rank = 0, ranks = 1;
  library_calls.Comm_rank(node, &rank);
  library_calls.Comm_size(node, &ranks);
  share_heaps(node, rank, ranks);
  library_calls.Comm_free(&node);
}

void forget_node() {
  if (node_known) library_calls.Group_free(&node_group);
  node_known = false;
}

std::unique_ptr<NodeMemory> make_node_memory(MPI_Comm comm, int rank, int ranks,
                                             std::int64_t window_bytes) {
  const std::vector<int> node_ranks = ranks == 1 ? std::vector<int>{} : ranks_of_node(comm, ranks);
  if (node_ranks.empty()) return nullptr;
  auto segment = share_segment(comm, rank, NodeWindows::bytes(ranks, window_bytes));
  if (!all_have_it(comm, rank, segment)) return nullptr;
  segment->close_to_others();
  return std::make_unique<NodeMemory>(std::move(*segment), rank, ranks, window_bytes,
                                      heaps_of(node_ranks));
}

bool NodeMemory::worth_looking(std::uint32_t fingerprint) {
  Habit& usual = habit(fingerprint);
  if (usual.left == 0) return true;
  --usual.left;
  return false;
}

void NodeMemory::looked(std::uint32_t fingerprint, bool found) {
  constexpr int kLongestPause = 63;
  Habit& usual = habit(fingerprint);
  usual.pause = found ? 0 : static_cast<std::uint8_t>(std::min(2 * usual.pause + 1, kLongestPause));
  usual.left = usual.pause;
}

}  // namespace weft::interpose
