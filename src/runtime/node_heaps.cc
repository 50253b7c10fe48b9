// Each tells where its heap is, and how its other memory is attached. Whether that works is tried
// out with one other rank; if it does for all, each rank attaches the others' memory when it first
// needs it, which may still fail: the ranks of a call agree then. Why not all at once: on a node
// with 128 ranks that would be 16,000 times half a dozen system calls.
#include "runtime/node_heaps.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
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

// The ranks of this node by their places; which of them this rank tries out, and which is itself.
// The first two may measure copies at once.
struct Others {
  const std::vector<Offer>& offers;
  std::size_t own;

  bool is_tried(std::size_t place) const {
    return place == (own + 1) % offers.size() || (own == 1 && place == 0);
  }
  // Whether it works with those that are tried out; the rest is expected to work. `has`: what a
  // rank offers, that all must have.
  template <class Has, class Try, class Expect>
  bool add(Has has, Try try_out, Expect expect) const {
    bool works = std::all_of(offers.begin(), offers.end(), has);
    for (std::size_t place = 0; place < offers.size() && works; ++place) {
      if (place == own) continue;
      if (is_tried(place))
        works = try_out(offers[place]);
      else
        expect(offers[place]);
    }
    return works;
  }
};

bool can_attach_heaps(const Others& others) {
  return others.add([](const Offer& offer) { return offer.name.bytes > 0; },
                    [](const Offer& offer) {
                      const auto first_page = Segment::Mapped::first_page;
                      return static_cast<bool>(Segment::attach(offer.name, first_page));
                    },
                    [](const Offer&) {});
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
bool add_processes(const Others& others) {
  ProcessMemory* const to = process_memory();
  return to &&
         others.add([](const Offer& offer) { return offer.process.segment != 0; },
                    [to](const Offer& offer) { return to->add(offer.world_rank, offer.process); },
                    [to](const Offer& offer) { to->expect(offer.world_rank, offer.process); });
}

// The same of the kernel's copies.
bool add_copies(const Others& others) {
  OneCopy* const to = one_copy();
  return to &&
         others.add([](const Offer& offer) { return offer.copies.process > 0; },
                    [to](const Offer& offer) { return to->add(offer.world_rank, offer.copies); },
                    [to](const Offer& offer) { to->expect(offer.world_rank, offer.copies); });
}

// Each under the number of its rank.
void announce(const std::vector<Offer>& offers, int own_rank) {
  Node& here = node();
  for (const Offer& offer : offers) here.ranks.push_back(offer.world_rank);
  std::sort(here.ranks.begin(), here.ranks.end());
  here.own->set_sharers(static_cast<int>(here.ranks.size()));
  shared_ranges().add_own_heap(own_rank, here.own->parts(), here.ranks);
  for (const Offer& offer : offers)
    if (offer.world_rank != own_rank) shared_ranges().add_heap(offer.world_rank, offer.name);
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
  if (lacking != offers.end()) say_if_missed(lacking->world_rank, own.world_rank);
  const Others others{offers, static_cast<std::size_t>(place)};
  const Abilities all =
      of_all(here, {can_attach_heaps(others), add_processes(others), add_copies(others)});
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
