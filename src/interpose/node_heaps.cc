// Each tells where its heap is; all map all of them, or everybody does without.
#include "interpose/node_heaps.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <optional>

#include "interpose/generated/library_calls.h"
#include "transport/mpi/handles.h"
#include "transport/transport.h"

namespace weft::interpose {
namespace {

// Kept to the end of the process: the application may use its memory after MPI_Finalize.
struct Node {
  SharedHeap* own = nullptr;
  std::vector<std::optional<Segment>> others;  // by rank of the node; none: this process
  std::vector<std::byte*> begins;
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

bool attach(const std::vector<SegmentName>& names, int rank) {
  Node& here = node();
  for (std::size_t other = 0; other < names.size(); ++other) {
    here.others.emplace_back();
    if (static_cast<int>(other) == rank) {
      here.begins.push_back(here.own->begin());
      continue;
    }
    auto segment = Segment::attach(names[other]);
    if (!segment) return false;
    madvise(segment->data(), static_cast<std::size_t>(segment->bytes()), MADV_DONTDUMP);
    here.begins.push_back(segment->data());
    here.others.back() = std::move(*segment);
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

void share_heaps(MPI_Comm comm, int rank, int ranks) {
  if (ranks == 1) return;
  node().own = find_or_make_heap();
  const bool shares = node().own && node().own->is_shared();
  const SegmentName name = shares ? node().own->name() : SegmentName{};
  std::vector<SegmentName> names(static_cast<std::size_t>(ranks));
  library_calls.Allgather(&name, sizeof name, handles.byte, names.data(), sizeof name, handles.byte,
                          comm);
  const bool all_share = std::all_of(names.begin(), names.end(),
                                     [](const SegmentName& other) { return other.bytes > 0; });
  if (!all_of_node(comm, all_share && attach(names, rank))) forget();
}

SharedHeap* own_heap() {
  return node().own;
}

std::vector<std::byte*> heaps_of(const std::vector<int>& node_ranks) {
  std::vector<std::byte*> begins;
  if (!own_heap()) return begins;
  for (const int rank : node_ranks) begins.push_back(node().begins[static_cast<std::size_t>(rank)]);
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
