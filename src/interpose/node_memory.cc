// Finding the node once, then a segment for each communicator that lies within it.
#include "interpose/node_memory.h"

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "interpose/generated/library_calls.h"
#include "schedule/schedule.h"
#include "transport/mpi/handles.h"

namespace weft::interpose {
namespace {

MPI_Group node_group;
bool node_known = false;

bool all_on_this_node(MPI_Comm comm, int ranks) {
  if (!node_known) return false;
  MPI_Group group;
  if (library_calls.Comm_group(comm, &group) != MPI_SUCCESS) return false;
  std::vector<int> members(static_cast<std::size_t>(ranks)), here(members.size());
  for (int rank = 0; rank < ranks; ++rank) members[static_cast<std::size_t>(rank)] = rank;
  const int code =
      library_calls.Group_translate_ranks(group, ranks, members.data(), node_group, here.data());
  library_calls.Group_free(&group);
  return code == MPI_SUCCESS && std::find(here.begin(), here.end(), MPI_UNDEFINED) == here.end();
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
  library_calls.Comm_free(&node);
}

void forget_node() {
  if (node_known) library_calls.Group_free(&node_group);
  node_known = false;
}

std::unique_ptr<NodeMemory> make_node_memory(MPI_Comm comm, int rank, int ranks,
                                             std::int64_t window_bytes) {
  if (ranks == 1 || !all_on_this_node(comm, ranks)) return nullptr;
  auto segment = share_segment(comm, rank, NodeWindows::bytes(ranks, window_bytes));
  if (!all_have_it(comm, rank, segment)) return nullptr;
  segment->close_to_others();
  return std::make_unique<NodeMemory>(std::move(*segment), rank, ranks, window_bytes);
}

}  // namespace weft::interpose
