#include "runtime/request/windows.h"

#include <string_view>

#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/job/runtime.h"

namespace weft {
namespace {

// Changes the number of tracked windows by `change`, for windows of this use. If this rank has
// exposed a window but never locked it, the other ranks seldom lock it, and the progress thread may
// poll less often.
void leave(WindowUse use, int change) {
  const bool is_seldom_locked = use == WindowUse::active;
  Runtime::active()->progress.leave_transfers(
      change, 0, change > 0 ? 1 : 0, is_seldom_locked ? change : 0, is_seldom_locked ? 0 : change);
}

}  // namespace

// Returns the only object of this process. It is never destroyed, since programs may free windows
// while the process exits.
Windows& Windows::own() {
  static auto* const all = new Windows;
  return *all;
}

void Windows::add(MPI_Win window, WindowUse use) {
  const std::lock_guard lock(mutex_);
  if (!uses_.try_emplace(window, use).second) return;
  leave(use, 1);
  count_.fetch_add(1, std::memory_order_relaxed);
}

void Windows::used(MPI_Win window, WindowUse use) {
  const std::lock_guard lock(mutex_);
  const auto found = uses_.find(window);
  if (found == uses_.end() || found->second >= use) return;
  leave(use, 1);
  leave(found->second, -1);
  found->second = use;
}

std::optional<WindowUse> Windows::take(MPI_Win window) {
  const std::lock_guard lock(mutex_);
  const auto node = uses_.extract(window);
  if (!node) return std::nullopt;
  leave(node.mapped(), -1);
  return node.mapped();
}

bool says_no_locks(MPI_Info info) {
  char value[8] = "";
  int found = 0;
  if (info == handles.info_null) return false;
  library_calls.Info_get(info, "no_locks", sizeof value - 1, value, &found);
  return found && value == std::string_view("true");
}

void follow_window(MPI_Win window, MPI_Info info) {
  if (Runtime::active() && !says_no_locks(info)) Windows::own().add(window, WindowUse::unknown);
}

void note_use(MPI_Win window, WindowUse use) {
  if (Runtime::active()) Windows::own().used(window, use);
}

std::optional<WindowUse> take_window(MPI_Win window) {
  if (!windows_are_followed.load() || !Runtime::active()) return std::nullopt;
  return Windows::own().take(window);
}

void give_window_back(MPI_Win window, WindowUse use) {
  if (Runtime::active()) Windows::own().add(window, use);
}

}  // namespace weft
