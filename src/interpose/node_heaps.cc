// Each tells where its heap is; all map all of them, or everybody does without.
#include "interpose/node_heaps.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>

#include "interpose/generated/library_calls.h"
#include "interpose/shared_buffers.h"
#include "transport/mpi/handles.h"

namespace weft::interpose {
namespace {

// Kept to the end of the process: the application may use its memory after MPI_Finalize.
struct Node {
  SharedHeap* own = nullptr;
  std::vector<Segment> others;
  std::vector<int> ranks;  // whose heaps are seen here, by rank in MPI_COMM_WORLD, in order
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

// Of all but this rank; false: some cannot be mapped.
bool attach(const std::vector<Offer>& offers, int own_rank) {
  for (const Offer& offer : offers) {
    if (offer.world_rank == own_rank) continue;
    auto segment = Segment::attach(offer.name);
    if (!segment) return false;
    madvise(segment->data(), static_cast<std::size_t>(segment->bytes()), MADV_DONTDUMP);
    node().others.push_back(std::move(*segment));
  }
  return true;
}

// Each under the number of its rank.
void announce(const std::vector<Offer>& offers, int own_rank) {
  Node& here = node();
  for (const Offer& offer : offers) here.ranks.push_back(offer.world_rank);
  std::sort(here.ranks.begin(), here.ranks.end());
  auto other = here.others.begin();
  for (const Offer& offer : offers) {
    const bool is_own = offer.world_rank == own_rank;
    std::byte* const begin = is_own ? here.own->begin() : (other++)->data();
    shared_ranges().add({offer.world_rank, begin, offer.name.bytes, here.ranks});
  }
}

bool all_of_node(MPI_Comm comm, bool value) {
  const std::int64_t lacking = value ? 0 : 1;
  std::int64_t all_lacking = 0;
  library_calls.Allreduce(&lacking, &all_lacking, 1, handles.int64, handles.sum, comm);
  return all_lacking == 0;
}

void forget() {
  node().others.clear();
  node().own = nullptr;
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
  if (all_of_node(here, all_share && attach(offers, own.world_rank)))
    announce(offers, own.world_rank);
  else
    forget();
}

SharedHeap* own_heap() {
  return node().own;
}

bool heaps_are_shared(const std::vector<int>& world_ranks) {
  const std::vector<int>& here = node().ranks;
  return std::all_of(world_ranks.begin(), world_ranks.end(),
                     [&](int rank) { return std::binary_search(here.begin(), here.end(), rank); });
}

}  // namespace weft::interpose
