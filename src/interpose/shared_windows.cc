// Implements MPI_Win_allocate_shared and MPI_Win_free. All ranks of a shared-memory window have
// mapped its memory, so that collectives on buffers inside the window need no copy. For this the
// ranks agree on a number for the window and on the offset of each rank's part.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "interpose/generated/bodies.h"
#include "interpose/hooks.h"
#include "library/generated/library_calls.h"
#include "library/generated/next_calls.h"
#include "library/handles.h"
#include "runtime/job/runtime.h"
#include "runtime/node/node_heaps.h"
#include "runtime/node/node_memory.h"
#include "runtime/node/shared_buffers.h"
#include "runtime/request/accesses.h"
#include "runtime/request/blocking_call.h"
#include "runtime/request/windows.h"
#include "runtime/start/all_in_call.h"

namespace weft::interpose {
namespace {

using Words = std::vector<std::int64_t>;

// Maps windows to the numbers on which their ranks have agreed. It is never destroyed, since
// programs may free windows while the process exits.
struct Known {
  std::mutex mutex;  // guards `numbers`
  std::map<MPI_Win, std::int64_t> numbers;
};
Known& known() {
  static auto* instance = new Known;
  return *instance;
}

struct Part {
  std::byte* begin = nullptr;
  std::int64_t bytes = 0;
};

// Returns the parts of the window, indexed by rank. An empty part gets a null pointer, because some
// MPI libraries return a meaningless address for it.
std::vector<Part> parts_of(MPI_Win window, int ranks) {
  std::vector<Part> parts(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    MPI_Aint bytes = 0;
    int unit = 0;
    void* begin = nullptr;
    library_calls.Win_shared_query(window, rank, &bytes, &unit, &begin);
    if (bytes > 0) parts[static_cast<std::size_t>(rank)] = {static_cast<std::byte*>(begin), bytes};
  }
  return parts;
}

// Returns the address range that contains the parts of all ranks; an empty range if all parts are
// empty.
Part span_of(const std::vector<Part>& parts) {
  std::byte *first = nullptr, *last = nullptr;
  for (const Part& part : parts) {
    if (part.bytes == 0) continue;
    first = first ? std::min(first, part.begin) : part.begin;
    last = std::max(last, part.begin + part.bytes);
  }
  return {first, last - first};
}

// Returns the offset and size in bytes of each rank's part. If these are equal on all ranks, an
// offset from the first byte identifies the same byte of the window on each rank.
Words layout_of(const std::vector<Part>& parts, const std::byte* first) {
  Words layout;
  for (const Part& part : parts) {
    layout.push_back(part.bytes > 0 ? part.begin - first : 0);
    layout.push_back(part.bytes);
  }
  return layout;
}

// Returns a new number for a window, which is unique on this node. It also differs from the numbers
// of the ranks' heaps, which are the ranks in MPI_COMM_WORLD.
std::int64_t new_number(int world_rank) {
  static std::atomic<std::int64_t> made{0};
  return (std::int64_t{world_rank} + 1) << 32 | made.fetch_add(1);
}

// Lets the ranks of `comm` agree on a window; collective. usable: whether this rank can use the
// window for collectives. Returns the number that rank 0 has chosen. Returns nullopt on all ranks
// if any rank cannot use the window, or if the layouts differ.
std::optional<std::int64_t> agree(MPI_Comm comm, int own_world_rank, bool usable, Words layout) {
  const Words own = layout;
  layout.push_back(new_number(own_world_rank));
  const auto bytes = static_cast<int>(layout.size() * sizeof layout[0]);
  library_calls.Bcast(layout.data(), bytes, handles.byte, 0, comm);
  const bool same = std::equal(own.begin(), own.end(), layout.begin());
  const std::int64_t refusing = usable && same ? 0 : 1;
  std::int64_t refusals = 0;
  library_calls.Allreduce(&refusing, &refusals, 1, handles.int64, handles.sum, comm);
  return refusals == 0 ? std::optional(layout.back()) : std::nullopt;
}

// Removes the window from the map, since the MPI library may reuse its handle. Returns its number;
// nullopt if it had none.
std::optional<std::int64_t> take_number(MPI_Win window) {
  const std::lock_guard lock(known().mutex);
  const auto node = known().numbers.extract(window);
  return node ? std::optional(node.mapped()) : std::nullopt;
}

void give_number(MPI_Win window, std::int64_t number) {
  const std::lock_guard lock(known().mutex);
  known().numbers[window] = number;
}

// Registers a new window, so that collectives can use its memory directly. It is collective over
// `comm`, the ranks of the window.
void get_to_know(MPI_Win window, MPI_Info info, MPI_Comm comm) {
  int rank = 0, ranks = 1;
  library_calls.Comm_rank(comm, &rank);
  library_calls.Comm_size(comm, &ranks);
  std::vector<int> members = world_ranks_of(comm, ranks);
  if (ranks == 1 || !heaps_are_shared(members)) return;
  const auto parts = parts_of(window, ranks);
  const Part span = span_of(parts);
  // If the program promises with no_locks not to lock the window, a rank may free and unmap the
  // window while another rank's collective still uses it.
  const bool usable = span.bytes > 0 && !says_no_locks(info);
  const int own_world_rank = members[static_cast<std::size_t>(rank)];
  const auto number = agree(comm, own_world_rank, usable, layout_of(parts, span.begin));
  if (!number) return;
  std::sort(members.begin(), members.end());
  shared_ranges().add({*number, span.begin, span.bytes, std::move(members)});
  give_number(window, *number);
}

}  // namespace

namespace special {

int Win_allocate_shared(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr,
                        MPI_Win* win) {
  BlockingCall guard(CallId::Win_allocate_shared);
  join_collective(guard, comm);
  const int code = next_calls.Win_allocate_shared(size, disp_unit, info, comm, baseptr, win);
  if (code == MPI_SUCCESS) opened_window(guard, *win, comm, info);
  if (code == MPI_SUCCESS && Runtime::active()) get_to_know(*win, info, comm);
  return code;
}

#if !defined(WEFT_FAMILY_OPENMPI)
int Win_allocate_shared_c(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm,
                          void* baseptr, MPI_Win* win) {
  BlockingCall guard(CallId::Win_allocate_shared_c);
  join_collective(guard, comm);
  const int code = next_calls.Win_allocate_shared_c(size, disp_unit, info, comm, baseptr, win);
  if (code == MPI_SUCCESS) opened_window(guard, *win, comm, info);
  if (code == MPI_SUCCESS && Runtime::active()) get_to_know(*win, info, comm);
  return code;
}
#endif

}  // namespace special

namespace object {

// Frees a window. While some ranks have freed the window and others have not, other ranks may still
// use addresses inside it that were published earlier. New memory at these addresses must not be
// mistaken for the window. Therefore the window is marked as leaving before it is freed.
int Win_free(bool nested, MPI_Win* win) {
  std::optional<BlockingCall> guard;
  const MPI_Win window = *win;
  if (!nested) {
    guard.emplace(CallId::Win_free);
    join_collective_of_window(*guard, window);
  }
  const auto number = take_number(window);
  if (number) shared_ranges().set_leaving(*number, true);
  end_all(window);  // must precede Win_free(), after which another window may get the handle
  const auto followed = take_window(window);
  const int code = next_calls.Win_free(win);
  if (followed && code != MPI_SUCCESS) give_window_back(window, *followed);
  if (guard && code == MPI_SUCCESS) freed_window(*guard, window);
  if (!number) return code;
  if (code == MPI_SUCCESS) {
    shared_ranges().remove(*number);
  } else {
    shared_ranges().set_leaving(*number, false);
    give_number(window, *number);
  }
  return code;
}

}  // namespace object
}  // namespace weft::interpose
