// Each tells where its heap is, and how its other memory is attached; all map all heaps, or
// everybody does without. The same holds for attaching, which is tried out.
#include "runtime/node_heaps.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>

#include "base/log.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/one_copy.h"
#include "runtime/shared_buffers.h"

namespace weft {
namespace {

// Kept to the end of the process: the application may use its memory after MPI_Finalize.
struct Node {
  SharedHeap* own = nullptr;
  std::map<int, std::unique_ptr<SegmentParts>> others;  // by rank in MPI_COMM_WORLD
  std::vector<int> ranks;  // whose heaps are seen here, by rank in MPI_COMM_WORLD, in order
  std::unique_ptr<ProcessMemory> processes;  // nullptr: cannot be attached
  std::unique_ptr<OneCopy> copies;           // nullptr: the kernel does not copy
  OneCopyRule rule;
};
Node& node() {
  static auto* instance = new Node;
  return *instance;
}

// Of libweft-heap.so, where it is loaded: the application's memory comes from its heap.
using FindHeap = SharedHeap* (*)();
FindHeap heap_of_application() {
  return reinterpret_cast<FindHeap>(dlsym(RTLD_DEFAULT, "weft_shared_heap"));
}

SharedHeap* find_or_make_heap() {
  if (const FindHeap find = heap_of_application()) return find();
  const auto made = SharedHeap::create();
  return made ? *made : nullptr;
}

// A heap that was asked for is missed. lacking: the first rank that has none.
void say_if_missed(int lacking, int own_rank) {
  if (lacking != own_rank || !heap_of_application()) return;
  const auto refused = SharedHeap::create();
  say("rank " + std::to_string(own_rank) + " has no heap that its node's ranks can see (" +
      (refused ? "it cannot be found" : refused.error().message) +
      "): large allocations are copied as without --shared-heap");
}

// What a rank tells the others; no name where it has no heap to share, no memory to attach, or none
// to copy from.
struct Offer {
  SegmentName name{};
  ProcessMemory::Name process{};
  OneCopy::Name copies{};
  KnownRule rule;  // of the node's first rank
  int world_rank = 0;
};

// Of all but this rank, a page, from which the rest can be mapped later on; false: some cannot be.
bool attach(const std::vector<Offer>& offers, int own_rank) {
  for (const Offer& offer : offers) {
    if (offer.world_rank == own_rank) continue;
    auto segment = Segment::attach(offer.name, Segment::Mapped::first_page);
    if (!segment) return false;
    node().others[offer.world_rank] = std::make_unique<SegmentParts>(std::move(*segment));
  }
  return true;
}

// A library that was named is missed where it cannot be opened.
std::unique_ptr<ProcessMemory> open_own_memory(std::string_view xpmem, int own_rank) {
  const auto library = Xpmem::open(xpmem);
  if (library) return ProcessMemory::create(*library, own_rank);
  const bool is_named = xpmem != Xpmem::kOfSystem && xpmem != Xpmem::kNone;
  if (is_named && own_rank == 0) say(library.error().message);
  return nullptr;
}

// The same of the processes' memory, if this one's is among it.
bool add_processes(const std::vector<Offer>& offers, int own_rank) {
  ProcessMemory* const processes = process_memory();
  return processes && std::all_of(offers.begin(), offers.end(), [&](const Offer& offer) {
           if (offer.process.segment == 0) return false;
           return offer.world_rank == own_rank || processes->add(offer.world_rank, offer.process);
         });
}

// The same of the kernel's copies.
bool add_copies(const std::vector<Offer>& offers, int own_rank) {
  OneCopy* const copies = one_copy();
  return copies && std::all_of(offers.begin(), offers.end(), [&](const Offer& offer) {
           return offer.world_rank == own_rank || copies->add(offer.world_rank, offer.copies);
         });
}

// Each under the number of its rank.
void announce(const std::vector<Offer>& offers, int own_rank) {
  Node& here = node();
  for (const Offer& offer : offers) here.ranks.push_back(offer.world_rank);
  std::sort(here.ranks.begin(), here.ranks.end());
  here.own->set_sharers(static_cast<int>(here.ranks.size()));
  shared_ranges().add_own_heap(own_rank, here.own->parts(), here.ranks);
  for (const auto& [rank, parts] : here.others) shared_ranges().add_heap(rank, *parts);
}

// What this process can do; of a node, what all can.
struct Abilities {
  bool map_heaps = false, attach = false, copy = false;
};

Abilities of_all(MPI_Comm comm, Abilities own) {
  const std::array<std::int64_t, 3> lacking{own.map_heaps ? 0 : 1, own.attach ? 0 : 1,
                                            own.copy ? 0 : 1};
  std::array<std::int64_t, 3> all_lacking{};
  library_calls.Allreduce(lacking.data(), all_lacking.data(), static_cast<int>(lacking.size()),
                          handles.int64, handles.sum, comm);
  return {all_lacking[0] == 0, all_lacking[1] == 0, all_lacking[2] == 0};
}

void forget() {
  node().others.clear();
  node().own = nullptr;
  node().processes.reset();
  node().copies.reset();
}

void end_trials(bool can_attach) {
  if (can_attach)
    node().processes->end_trials();
  else
    node().processes.reset();
}

// Where no call would be the kernel's, nobody looks for any.
void settle_rule(MPI_Comm here, const KnownRule& known, const std::vector<Offer>& offers,
                 const Config& config, PlanCache& plans) {
  node().rule = known.rule;
  if (known.is_to_be_measured) {
    std::vector<int> world_ranks;
    for (const Offer& offer : offers) world_ranks.push_back(offer.world_rank);
    node().rule = measured_rule(here, known.rule, world_ranks, *one_copy(), config, plans);
    one_copy()->begin_count();
  }
  if (!node().rule.takes_any()) node().copies.reset();
}

}  // namespace

void share_memory_of_processes(MPI_Comm here, const Config& config, PlanCache& plans) {
  int ranks = 1, place = 0;
  library_calls.Comm_size(here, &ranks);
  library_calls.Comm_rank(here, &place);
  if (ranks == 1) return;
  node().own = find_or_make_heap();
  Offer own;
  if (node().own && node().own->is_shared()) own.name = node().own->name();
  library_calls.Comm_rank(handles.comm_world, &own.world_rank);
  node().processes = open_own_memory(config.xpmem, own.world_rank);
  if (process_memory()) own.process = process_memory()->name();
  if (config.one_copy != OneCopyUse::never) node().copies = OneCopy::create(own.world_rank);
  if (one_copy()) own.copies = one_copy()->name();
  if (place == 0) own.rule = known_rule(config, ranks, plans);
  std::vector<Offer> offers(static_cast<std::size_t>(ranks));
  constexpr int kBytes = sizeof own;
  library_calls.Allgather(&own, kBytes, handles.byte, offers.data(), kBytes, handles.byte, here);
  const auto lacking = std::find_if(offers.begin(), offers.end(),
                                    [](const Offer& offer) { return offer.name.bytes == 0; });
  const bool all_share = lacking == offers.end();
  if (!all_share) say_if_missed(lacking->world_rank, own.world_rank);
  const Abilities all =
      of_all(here, {all_share && attach(offers, own.world_rank),
                    add_processes(offers, own.world_rank), add_copies(offers, own.world_rank)});
  if (!all.map_heaps) return forget();
  announce(offers, own.world_rank);
  end_trials(all.attach);
  if (all.copy)
    settle_rule(here, offers[0].rule, offers, config, plans);
  else
    node().copies.reset();
}

SharedHeap* own_heap() {
  return node().own;
}

ProcessMemory* process_memory() {
  return node().processes.get();
}

OneCopy* one_copy() {
  return node().copies.get();
}

const OneCopyRule& one_copy_rule() {
  return node().rule;
}

bool heaps_are_shared(const std::vector<int>& world_ranks) {
  const std::vector<int>& here = node().ranks;
  return std::all_of(world_ranks.begin(), world_ranks.end(),
                     [&](int rank) { return std::binary_search(here.begin(), here.end(), rank); });
}

}  // namespace weft
