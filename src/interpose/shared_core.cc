// A page for each node, with a place for each of its threads.
#include "interpose/shared_core.h"

#include <memory>
#include <utility>

#include "interpose/generated/library_calls.h"
#include "shm/segment.h"
#include "transport/mpi/handles.h"

namespace weft::interpose {
namespace {

Result<Segment> page_of_node(MPI_Comm node, int local_rank, std::int64_t bytes) {
  SegmentName name{};
  auto segment = local_rank == 0 ? Segment::create(bytes) : Result<Segment>(Error{});
  if (local_rank == 0 && segment) name = segment->name();
  library_calls.Bcast(&name, static_cast<int>(sizeof name), handles.byte, 0, node);
  if (local_rank != 0 && name.bytes > 0) segment = Segment::attach(name);
  library_calls.Barrier(node);
  if (local_rank == 0 && segment) segment->close_to_others();
  return segment;
}

}  // namespace

Baton baton_for(MPI_Comm node, int local_rank, const std::vector<int>& core_of_thread) {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Baton::Place));
  const auto ranks = static_cast<std::int64_t>(core_of_thread.size());
  auto segment = page_of_node(node, local_rank, ranks * kBytes);
  if (!segment) return {};
  const auto memory = std::make_shared<Segment>(std::move(*segment));
  auto* const places = reinterpret_cast<Baton::Place*>(memory->data());
  const int own_core = core_of_thread[static_cast<std::size_t>(local_rank)];
  std::vector<Baton::Place*> others;
  for (std::size_t other = 0; other < core_of_thread.size(); ++other)
    if (core_of_thread[other] == own_core && other != static_cast<std::size_t>(local_rank))
      others.push_back(&places[other]);
  return {memory, &places[local_rank], std::move(others)};
}

}  // namespace weft::interpose
