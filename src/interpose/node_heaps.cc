// Each tells where its heap is; all map all of them, or everybody does without.
#include "interpose/node_heaps.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>

#include "interpose/generated/library_calls.h"
#include "transport/mpi/handles.h"
#include "transport/transport.h"

namespace weft::interpose {
namespace {

// Kept to the end of the process: the application may use its memory after MPI_Finalize.
struct Node {
  SharedHeap* own = nullptr;
  std::vector<Segment> others;
  std::map<int, std::byte*> begins;  // by rank in MPI_COMM_WORLD
};
Node& node() {
  static auto* instance = new Node;
  return *instance;
}

// Where libweft-heap.so is loaded, the application's memory comes from its heap.
SharedHeap* find_or_make_heap() {
  using Find = SharedHeap* (*)();
  if (const auto find = reinterpret_cast<Find>(dlsym(RTLD_DEFAULT, "weft_shared_heap")))
    return find();
  const auto made = SharedHeap::create();
  return made ? *made : nullptr;
}

// What a rank tells the others; no name where it has no heap to share.
struct Offer {
  SegmentName name{};
  int world_rank = 0;
};

bool attach(const std::vector<Offer>& offers, int own_rank) {
  Node& here = node();
  here.begins[own_rank] = here.own->begin();
  for (const Offer& offer : offers) {
    if (offer.world_rank == own_rank) continue;
    auto segment = Segment::attach(offer.name);
    if (!segment) return false;
    madvise(segment->data(), static_cast<std::size_t>(segment->bytes()), MADV_DONTDUMP);
    here.begins[offer.world_rank] = segment->data();
    here.others.push_back(std::move(*segment));
  }
  return true;
}

bool all_of_node(MPI_Comm comm, bool value) {
  const std::int64_t lacking = value ? 0 : 1;
  std::int64_t all_lacking = 0;
  library_calls.Allreduce(&lacking, &all_lacking, 1, handles.int64, handles.sum, comm);
  return all_lacking == 0;
}

void forget() {
  node().others.clear();
  node().begins.clear();
  node().own = nullptr;
}

// Where plain data lies in this process's heap.
std::int64_t shown(const Schedule& schedule, const Location& from, const Call& call) {
  const Shape& shape = schedule.shape;
  const Buffer buffer = from.buffer;
  const void* const origin = buffer == Buffer::send ? call.sendbuf : call.recvbuf;
  for (const Operand& run : buffer_runs(shape, buffer)) {
    const Range range = touched_bytes(shape, run);
    const auto* begin = static_cast<const std::byte*>(origin) + range.begin;
    const bool inside =
        node().own->contains(begin) && node().own->contains(begin + (range.end - range.begin - 1));
    if (!inside || !layout_of(shape, run.unit).plain) return ShownBuffers::kNotShared;
  }
  const auto* at = static_cast<const std::byte*>(origin) + from.offset;
  return node().own->contains(at) ? at - node().own->begin() : 0;
}

}  // namespace

void share_heaps(MPI_Comm here) {
  int ranks = 1;
  library_calls.Comm_size(here, &ranks);
  if (ranks == 1) return;
  node().own = find_or_make_heap();
  Offer own;
  if (node().own && node().own->is_shared()) own.name = node().own->name();
  library_calls.Comm_rank(handles.comm_world, &own.world_rank);
  std::vector<Offer> offers(static_cast<std::size_t>(ranks));
  constexpr int kBytes = sizeof own;
  library_calls.Allgather(&own, kBytes, handles.byte, offers.data(), kBytes, handles.byte, here);
  const bool all_share = std::all_of(offers.begin(), offers.end(),
                                     [](const Offer& offer) { return offer.name.bytes > 0; });
  if (!all_of_node(here, all_share && attach(offers, own.world_rank))) forget();
}

SharedHeap* own_heap() {
  return node().own;
}

std::vector<std::byte*> heaps_of(const std::vector<int>& world_ranks) {
  std::vector<std::byte*> begins;
  for (const int rank : world_ranks) {
    const auto found = node().begins.find(rank);
    if (found == node().begins.end()) return {};
    begins.push_back(found->second);
  }
  return begins;
}

ShownBuffers shown_buffers(const Call& call, const Schedule& schedule) {
  ShownBuffers buffers;
  if (!stands_alone(schedule, true)) return {ShownBuffers::kNotShared, ShownBuffers::kNotShared};
  if (schedule.shows_input) buffers.input = shown(schedule, outgoing(schedule.shape, 0).at, call);
  if (schedule.shows_result) buffers.result = shown(schedule, {Buffer::recv, 0}, call);
  return buffers;
}

}  // namespace weft::interpose
