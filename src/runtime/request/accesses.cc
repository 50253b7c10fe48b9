#include "runtime/request/accesses.h"

#include "library/generated/library_calls.h"
#include "runtime/job/runtime.h"
#include "runtime/request/transfers.h"

namespace weft {

// Returns the only object of this process. It is never destroyed, since threads may use it while
// the process exits.
Accesses& Accesses::own() {
  static auto* const all = new Accesses;
  return *all;
}

template <class Change>
void Accesses::change(MPI_Win window, If which, Change change, std::uint32_t started,
                      std::uint32_t opened) {
  const std::lock_guard lock(mutex_);
  const auto found = which == If::any ? windows_.try_emplace(window).first : windows_.find(window);
  if (found == windows_.end()) return;
  const int before = found->second.count(), exposed_before = found->second.is_exposed;
  change(found->second);
  const int more = found->second.count() - before;
  accesses_under_way.fetch_add(more);
  if (more != 0 || started > 0 || opened > 0)
    Runtime::active()->progress.leave_transfers(more, started, opened,
                                                found->second.is_exposed - exposed_before);
  if (found->second.count() == 0) windows_.erase(found);
}

void Accesses::started(MPI_Win window, int target) {
  if (target == MPI_PROC_NULL) return;
  change(
      window, If::any, [&](OfWindow& all) { all.targets.insert(target); }, 1);
  count_.fetch_add(1, std::memory_order_relaxed);
}

void Accesses::exposed(MPI_Win window) {
  change(
      window, If::any, [](OfWindow& all) { all.is_exposed = true; }, 0, 1);
}

void Accesses::end(MPI_Win window, int target) {
  change(window, If::known, [&](OfWindow& all) { all.targets.erase(target); });
}

void Accesses::end(MPI_Win window) {
  change(window, If::known, [](OfWindow& all) { all.targets.clear(); });
}

void Accesses::end_exposure(MPI_Win window) {
  change(window, If::known, [](OfWindow& all) { all.is_exposed = false; });
}

void Accesses::end_all(MPI_Win window) {
  change(window, If::known, [](OfWindow& all) { all = {}; });
}

void access_started(MPI_Win window, int target) {
  if (Runtime::active()) Accesses::own().started(window, target);
}

namespace {

template <class Value>
const Value* attribute(MPI_Win window, int key) {
  Value* value = nullptr;
  int is_set = 0;
  const int code = library_calls.Win_get_attr(window, key, &value, &is_set);
  return code == MPI_SUCCESS && is_set ? value : nullptr;
}

}  // namespace

void begin_exposure(MPI_Win window) {
  const std::int64_t least = least_transfer_bytes.load(std::memory_order_relaxed);
  Runtime* runtime = Runtime::active();
  if (least == kNoTransfers || !runtime) return;
  const auto* const bytes = attribute<MPI_Aint>(window, MPI_WIN_SIZE);
  const auto* const flavor = attribute<int>(window, MPI_WIN_CREATE_FLAVOR);
  if (bytes && *bytes >= least && flavor && *flavor != MPI_WIN_FLAVOR_SHARED)
    Accesses::own().exposed(window);
}

void end_known_accesses(MPI_Win window) {
  if (Runtime::active()) Accesses::own().end(window);
}

void end_known_accesses(MPI_Win window, int target) {
  if (Runtime::active()) Accesses::own().end(window, target);
}

void end_known_exposure(MPI_Win window) {
  if (Runtime::active()) Accesses::own().end_exposure(window);
}

void end_all_known(MPI_Win window) {
  if (Runtime::active()) Accesses::own().end_all(window);
}

}  // namespace weft
