// Decides how the processes of a node access each other's memory, and creates their heaps. A heap
// is created when a rank first needs memory from it; the rank then publishes the heap's name. A
// rank attaches the memory of another rank when it first needs it. If that fails, the ranks of the
// call agree on another way. Attaching everything at once would be too much: with 128 ranks on a
// node that would be 16,000 attachments of about six system calls each.
//
// XPMEM and copies by the kernel are tried out with one other rank, if the first rank of the node
// says that they are available.
#include "runtime/node/node_heaps.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/log.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/node/one_copy.h"
#include "runtime/node/reach.h"

namespace weft {
namespace {

// The heaps of this node. The object is never destroyed, because the application may use its memory
// after MPI_Finalize.
struct Node {
  int own_rank = 0;
  // The ranks whose heaps this process can access, as sorted ranks in MPI_COMM_WORLD.
  std::vector<int> ranks;
  std::atomic<SharedHeap*> own{nullptr};
  std::mutex making;  // guards `names` and `is_refused`
  // The table with the names of the ranks' heaps; nullptr if heaps are not shared.
  std::shared_ptr<std::byte> names;
  bool is_refused = false;  // whether the system has refused to create this process's heap
};
Node& node() {
  static auto* instance = new Node;
  return *instance;
}

// The type of the function weft_shared_heap() in libweft-heap.so, which returns that library's
// heap.
using FindHeap = SharedHeap* (*)();
// Returns the function weft_shared_heap(); nullptr if libweft-heap.so is not loaded. This library
// allocates the application's memory from a shared heap.
FindHeap heap_of_application() {
  return reinterpret_cast<FindHeap>(dlsym(RTLD_DEFAULT, "weft_shared_heap"));
}

bool may_have_heap() {
  const FindHeap find = heap_of_application();
  if (!find) return SharedHeap::may_be_made();
  node().own = find();
  return node().own && node().own.load()->is_shared();
}

// Reports that the heap which the user has requested is not available. Only the rank `lacking`
// reports it, the first rank of the node that has no heap.
void say_if_missed(int lacking, int own_rank) {
  if (lacking != own_rank || !heap_of_application()) return;
  const auto refused = SharedHeap::create();
  say("rank " + std::to_string(own_rank) + " has no heap that its node's ranks can see (" +
      (refused ? "it cannot be found" : refused.error().message) +
      "): large allocations are copied as without --shared-heap");
}

// The message that the first rank of the node sends to the node's other ranks.
struct OfFirst {
  KnownRule rule;
  bool xpmem = false;  // whether XPMEM may be available

  bool copies() const { return rule.is_to_be_measured || rule.rule.takes_any(); }
};

// Tells the other ranks of the node how they can access this rank's memory. A name is empty if the
// others cannot attach the rank's memory, or cannot copy from it by the kernel.
struct Offer {
  ProcessMemory::Name process{};
  OneCopy::Name copies{};
  int world_rank = 0;
  bool has_heap = false;  // whether the rank has a heap or can create one
};

// The other ranks of this node. Each rank tries out its access to the next rank. Ranks 0 and 1 try
// out access to each other, because they measure the speed of copies.
struct Others {
  const std::vector<Offer>& offers;
  std::size_t own;

  bool is_tried(std::size_t node_rank) const {
    return node_rank == (own + 1) % offers.size() || (own == 1 && node_rank == 0);
  }
  // Returns whether all ranks make an offer, and access works with those ranks for which it is
  // tried out. has(offer): returns whether a rank makes the offer. try_out(offer): tries out access
  // to a rank. expect(offer): registers a rank without trying.
  template <class Has, class Try, class Expect>
  bool add(Has has, Try try_out, Expect expect) const {
    bool works = std::all_of(offers.begin(), offers.end(), has);
    for (std::size_t node_rank = 0; node_rank < offers.size() && works; ++node_rank) {
      if (node_rank == own) continue;
      if (is_tried(node_rank))
        works = try_out(offers[node_rank]);
      else
        expect(offers[node_rank]);
    }
    return works;
  }
};

// Opens XPMEM for this process; returns nullptr if it is not available. If the user has named an
// XPMEM library that cannot be opened, rank 0 reports that.
std::unique_ptr<ProcessMemory> open_own_memory(std::string_view xpmem, int own_rank) {
  const auto library = Xpmem::open(xpmem);
  if (library) return ProcessMemory::create(*library, own_rank);
  const bool is_named = xpmem != Xpmem::kOfSystem && xpmem != Xpmem::kNone;
  if (is_named && own_rank == 0) say(library.error().message);
  return nullptr;
}

// Registers the other processes for XPMEM. Returns whether this process can attach their memory:
// all processes have offered theirs, and attaching has worked where it was tried out.
bool add_processes(const Others& others) {
  ProcessMemory* const to = process_memory();
  return to &&
         others.add([](const Offer& offer) { return offer.process.segment != 0; },
                    [to](const Offer& offer) { return to->add(offer.world_rank, offer.process); },
                    [to](const Offer& offer) { to->expect(offer.world_rank, offer.process); });
}

// Registers the other processes for copies by the kernel. Returns whether such copies are possible:
// all processes have offered this, and copying has worked where it was tried out.
bool add_copies(const Others& others) {
  OneCopy* const to = one_copy();
  return to &&
         others.add([](const Offer& offer) { return offer.copies.process > 0; },
                    [to](const Offer& offer) { return to->add(offer.world_rank, offer.copies); },
                    [to](const Offer& offer) { to->expect(offer.world_rank, offer.copies); });
}

SegmentName* name_of_heap(std::size_t node_rank) {
  return reinterpret_cast<SegmentName*>(node().names.get()) + node_rank;
}

// Publishes the name of this process's heap in the table that the ranks of the node share.
void announce(SharedHeap& heap) {
  Node& here = node();
  const auto own = std::lower_bound(here.ranks.begin(), here.ranks.end(), here.own_rank);
  heap.set_sharers(static_cast<int>(here.ranks.size()));
  shared_ranges().add_own_heap(here.own_rank, heap.parts(), here.ranks);
  *name_of_heap(static_cast<std::size_t>(own - here.ranks.begin())) = heap.name();
}

// Tells how this process can access memory of the node's other processes. attach: by XPMEM. copy:
// by copies of the kernel. of_all() returns what is possible on all ranks.
struct Abilities {
  bool attach = false, copy = false;
};

Abilities of_all(MPI_Comm comm, Abilities own) {
  const std::array<std::int64_t, 2> lacking{own.attach ? 0 : 1, own.copy ? 0 : 1};
  std::array<std::int64_t, 2> all_lacking{};
  library_calls.Allreduce(lacking.data(), all_lacking.data(), static_cast<int>(lacking.size()),
                          handles.int64, handles.sum, comm);
  return {all_lacking[0] == 0, all_lacking[1] == 0};
}

void forget() {
  node().own = nullptr;
  own_reach().processes.reset();
  own_reach().copies.reset();
}

void end_trials(bool can_attach) {
  if (can_attach)
    own_reach().processes->end_trials();
  else
    own_reach().processes.reset();
}

// Determines for which collectives the kernel copies, by a measurement if necessary. If it copies
// for none, copies by the kernel are switched off.
void settle_rule(MPI_Comm here, const KnownRule& known, const std::vector<Offer>& offers,
                 const Config& config, PlanCache& plans) {
  own_reach().rule = known.rule;
  if (known.is_to_be_measured) {
    std::vector<int> world_ranks;
    for (const Offer& offer : offers) world_ranks.push_back(offer.world_rank);
    own_reach().rule = measured_rule(here, known.rule, world_ranks, *one_copy(), config, plans);
    one_copy()->begin_count();
  }
  if (!own_reach().rule.takes_any()) own_reach().copies.reset();
}

}  // namespace

void share_memory_of_processes(MPI_Comm here, const Config& config, PlanCache& plans) {
  int ranks = 1, node_rank = 0;
  library_calls.Comm_size(here, &ranks);
  library_calls.Comm_rank(here, &node_rank);
  if (ranks == 1) return;
  OfFirst told;
  if (node_rank == 0) told = {known_rule(config, ranks, plans), Xpmem::may_be_there(config.xpmem)};
  library_calls.Bcast(&told, sizeof told, handles.byte, 0, here);
  Offer own;
  library_calls.Comm_rank(handles.comm_world, &own.world_rank);
  own.has_heap = may_have_heap();
  if (told.xpmem) own_reach().processes = open_own_memory(config.xpmem, own.world_rank);
  if (process_memory()) own.process = process_memory()->name();
  if (told.copies()) own_reach().copies = OneCopy::create(own.world_rank);
  if (one_copy()) own.copies = one_copy()->name();
  std::vector<Offer> offers(static_cast<std::size_t>(ranks));
  constexpr int kBytes = sizeof own;
  library_calls.Allgather(&own, kBytes, handles.byte, offers.data(), kBytes, handles.byte, here);
  const auto lacking = std::find_if(offers.begin(), offers.end(),
                                    [](const Offer& offer) { return !offer.has_heap; });
  if (lacking != offers.end()) {
    say_if_missed(lacking->world_rank, own.world_rank);
    return forget();
  }
  const Others others{offers, static_cast<std::size_t>(node_rank)};
  const Abilities all = of_all(here, {add_processes(others), add_copies(others)});
  node().own_rank = own.world_rank;
  for (const Offer& offer : offers) node().ranks.push_back(offer.world_rank);
  std::sort(node().ranks.begin(), node().ranks.end());
  end_trials(all.attach);
  if (all.copy)
    settle_rule(here, told.rule, offers, config, plans);
  else
    own_reach().copies.reset();
}

std::int64_t bytes_for_heaps(int ranks) {
  const auto bytes = static_cast<std::int64_t>(sizeof(SegmentName)) * ranks;
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

void tell_of_heaps_in(std::shared_ptr<std::byte> memory) {
  Node& here = node();
  if (here.ranks.empty()) return;
  const std::lock_guard lock(here.making);
  here.names = std::move(memory);
  for (std::size_t node_rank = 0; node_rank < here.ranks.size(); ++node_rank)
    if (here.ranks[node_rank] != here.own_rank)
      shared_ranges().add_heap(here.ranks[node_rank], name_of_heap(node_rank));
  if (SharedHeap* const own = here.own) announce(*own);
}

SharedHeap* own_heap() {
  return node().own;
}

// Returns the heap of this process. It is created in the first call; if the system has refused
// once, it is not asked again.
SharedHeap* find_or_make_own_heap() {
  Node& here = node();
  if (SharedHeap* const own = here.own) return own;
  const std::lock_guard lock(here.making);
  if (here.own || !here.names || here.is_refused) return here.own;
  const auto made = SharedHeap::create();
  here.is_refused = !made;
  if (!made) return nullptr;
  announce(**made);
  here.own = *made;
  return *made;
}

bool heaps_are_shared(const std::vector<int>& world_ranks) {
  const std::vector<int>& here = node().ranks;
  return std::all_of(world_ranks.begin(), world_ranks.end(),
                     [&](int rank) { return std::binary_search(here.begin(), here.end(), rank); });
}

}  // namespace weft
