// Decides how the processes of a node access each other's memory, and keeps their shared heaps. A
// heap is created when a rank first needs memory from it; the rank then publishes the heap's name.
// Each rank attaches another rank's memory when it first needs it. That may fail; the ranks of a
// call then agree on another way. If each of 128 ranks attached the memory of all others at once,
// the node would make 16,000 attachments of half a dozen system calls each. XPMEM and kernel copies
// are tried with one other rank, if the first rank of the node says that they are available.
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

// The heaps of this node. The object lives to the end of the process, because the application may
// use its memory after MPI_Finalize.
struct Node {
  int own_rank = 0;
  std::vector<int> ranks;  // ranks whose heaps this process can access, as sorted ranks in
                           // MPI_COMM_WORLD
  std::atomic<SharedHeap*> own{nullptr};
  std::mutex making;                 // guards the members below
  std::shared_ptr<std::byte> names;  // names of the ranks' heaps; nullptr if they cannot be
                                     // published
  bool is_refused = false;           // the system has refused to make this process's heap
};
Node& node() {
  static auto* instance = new Node;
  return *instance;
}

// The type of weft_shared_heap() in libweft-heap.so, which returns that library's heap.
using FindHeap = SharedHeap* (*)();
// Returns weft_shared_heap(), by which libweft-heap.so gives the heap of the application's memory;
// nullptr if that library is not loaded.
FindHeap heap_of_application() {
  return reinterpret_cast<FindHeap>(dlsym(RTLD_DEFAULT, "weft_shared_heap"));
}

bool may_have_heap() {
  const FindHeap find = heap_of_application();
  if (!find) return SharedHeap::may_be_made();
  node().own = find();
  return node().own && node().own.load()->is_shared();
}

// Reports that the heap which the user requested (libweft-heap.so) is not available. lacking: the
// first rank of the node that has no heap.
void say_if_missed(int lacking, int own_rank) {
  if (lacking != own_rank || !heap_of_application()) return;
  const auto refused = SharedHeap::create();
  say("rank " + std::to_string(own_rank) + " has no heap that its node's ranks can see (" +
      (refused ? "it cannot be found" : refused.error().message) +
      "): large allocations are copied as without --shared-heap");
}

// The data that the first rank of the node sends to the others.
struct OfFirst {
  KnownRule rule;
  bool xpmem = false;  // XPMEM may be available

  bool copies() const { return rule.is_to_be_measured || rule.rule.takes_any(); }
};

// A rank's offer to the other ranks of its node. A name is empty if they cannot attach the rank's
// memory, or the kernel cannot copy from it.
struct Offer {
  ProcessMemory::Name process{};
  OneCopy::Name copies{};
  int world_rank = 0;
  bool has_heap = false;  // the rank has a heap or may create one
};

// The ranks of this node, indexed by node rank. Each rank tries access to the next one; ranks 0 and
// 1 also to each other, because they measure copies.
struct Others {
  const std::vector<Offer>& offers;
  std::size_t own;

  bool is_tried(std::size_t node_rank) const {
    return node_rank == (own + 1) % offers.size() || (own == 1 && node_rank == 0);
  }
  // Returns whether all ranks make the offer, and access works with those that are tried. try_out:
  // tries access to a rank. expect: registers a rank that is not tried. has: returns whether a rank
  // makes the offer.
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

// Opens XPMEM. An XPMEM library that the user named is reported if it cannot be opened.
std::unique_ptr<ProcessMemory> open_own_memory(std::string_view xpmem, int own_rank) {
  const auto library = Xpmem::open(xpmem);
  if (library) return ProcessMemory::create(*library, own_rank);
  const bool is_named = xpmem != Xpmem::kOfSystem && xpmem != Xpmem::kNone;
  if (is_named && own_rank == 0) say(library.error().message);
  return nullptr;
}

// Registers the other processes' memory for XPMEM. Returns whether this process can attach it:
// every process, this one included, has offered its memory, and the trials have worked.
bool add_processes(const Others& others) {
  ProcessMemory* const to = process_memory();
  return to &&
         others.add([](const Offer& offer) { return offer.process.segment != 0; },
                    [to](const Offer& offer) { return to->add(offer.world_rank, offer.process); },
                    [to](const Offer& offer) { to->expect(offer.world_rank, offer.process); });
}

// Registers the other processes for kernel copies. Returns whether the kernel copies from them:
// every process has offered this, and the trials have worked.
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

// Publishes this process's heap in the table of names.
void announce(SharedHeap& heap) {
  Node& here = node();
  const auto own = std::lower_bound(here.ranks.begin(), here.ranks.end(), here.own_rank);
  heap.set_sharers(static_cast<int>(here.ranks.size()));
  shared_ranges().add_own_heap(here.own_rank, heap.parts(), here.ranks);
  *name_of_heap(static_cast<std::size_t>(own - here.ranks.begin())) = heap.name();
}

// The ways in which this process can access the memory of the node's other processes: by attaching
// it with XPMEM, and by kernel copies. of_all() returns the ways that all ranks have.
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

// Determines for which collectives the kernel copies. If no call would use kernel copies, they are
// not measured.
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

// Creates this process's heap at the first call. After a refusal it does not ask the system again.
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
