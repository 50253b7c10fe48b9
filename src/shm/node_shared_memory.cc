// Implements the reuse of a communicator's shared memory (node_shared_memory.h). It is reused only
// after all of its ranks have left it, which its first page records. The node buffers keep their
// numbering, since all ranks have used the same ones, so their pages stay in use. Other memory that
// was handed out to the communicator is zeroed before it is handed out again.
#include "shm/node_shared_memory.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace weft {
namespace {

// Returns whether this process was forked after the first call of this function. It needs no system
// call, unlike getpid().
bool is_forked_child() {
  static bool is_child = false;
  [[maybe_unused]] static const int watched =
      pthread_atfork(nullptr, nullptr, [] { is_child = true; });
  return is_child;
}

}  // namespace

std::int64_t NodeSharedMemory::bytes(int ranks, std::int64_t buffer_bytes) {
  return kPageBytes + NodeBuffers::bytes(ranks, buffer_bytes);
}

NodeSharedMemory::NodeSharedMemory(std::shared_ptr<Segment> segment, Group group, int node_rank,
                                   std::int64_t buffer_bytes)
    : members_(std::move(group.members)),
      rest_{std::move(segment)},
      node_buffers_(rest_.segment->data() + kPageBytes, node_rank,
                    static_cast<int>(members_->size()), buffer_bytes),
      is_alone_(group.is_alone) {
  static_assert(sizeof(Shared) <= kPageBytes);
  rest_.next = begin_of_rest();
}

bool NodeSharedMemory::change_idle(std::uint64_t to) {
  std::uint64_t state = shared().state.load();
  return without_use(state) == kIdle &&
         shared().state.compare_exchange_strong(state, state - kIdle + to);
}

bool NodeSharedMemory::give_up() {
  std::uint64_t state = shared().state.load();
  while (use_of(state) == use_ && without_use(state) != kIdle)
    if (shared().state.compare_exchange_weak(state, state | kRetired)) return true;
  return false;
}

void NodeSharedMemory::enter() {
  use_ = use_of(shared().state.load());
  is_spread_.store(false, std::memory_order_relaxed);
  rest_.next = begin_of_rest();
  const auto clears = static_cast<std::uint16_t>(shared().clears.load());
  node_buffers_.begin_again(std::exchange(clears_, clears) != clears);
}

void NodeSharedMemory::leave() {
  Shared& page = shared();
  const std::uint64_t own = node_buffers_.taken() + 1;
  std::uint64_t others = 0;
  const bool agree = page.turns_1.compare_exchange_strong(others, own) || others == own;
  if (!agree || is_lost_.load(std::memory_order_relaxed)) page.state.fetch_or(kRetired);
  const bool is_spread = is_spread_.load(std::memory_order_relaxed);
  if (is_spread) page.state.fetch_or(kClear);
  if (is_spread || given_away() > 0) rest_.segment->forget_pages();
  const std::uint64_t left = (page.state.fetch_add(1) & kLeft) + 1;
  if (left == static_cast<std::uint64_t>(node_buffers_.ranks())) settle();
}

// Decides whether the memory can be reused, and prepares it. The last rank to leave the memory must
// call it. Another rank may give the memory up at the same time.
void NodeSharedMemory::settle() {
  Shared& page = shared();
  std::uint64_t state = page.state.load();
  bool is_well = (state & kRetired) == 0 && node_buffers_.are_at_rest();
  if (is_well && given_away() > 0)
    is_well = rest_.segment->clear_pages(begin_of_rest(), given_away());
  if (is_well && (state & kClear) != 0) {
    is_well = rest_.segment->clear_pages(kPageBytes, begin_of_rest() - kPageBytes);
    page.clears.fetch_add(1);
  }
  page.turns_1.store(0);
  for (;;) {
    const bool is_idle = is_well && (state & kRetired) == 0;
    const std::uint64_t settled = state - without_use(state) + (is_idle ? kIdle : kRetired);
    if (page.state.compare_exchange_weak(state, settled)) return;
  }
}

std::shared_ptr<NodeSharedMemory> NodeSharedMemories::add(std::shared_ptr<Segment> segment,
                                                          NodeSharedMemory::Group group,
                                                          int node_rank,
                                                          std::int64_t buffer_bytes) {
  return lend(std::make_unique<NodeSharedMemory>(std::move(segment), std::move(group), node_rank,
                                                 buffer_bytes));
}

std::shared_ptr<NodeSharedMemory> NodeSharedMemories::lend(std::unique_ptr<NodeSharedMemory> room) {
  // The first call of is_forked_child() starts the detection of forks.
  is_forked_child();
  return {room.release(),
          [this](NodeSharedMemory* lent) { put(std::unique_ptr<NodeSharedMemory>(lent)); }};
}

// Returns memory for another communicator of these ranks; nullptr if there is none
// (node_shared_memory.h). It prefers the memory that was used last, whose lines are more likely to
// be in cache.
std::shared_ptr<NodeSharedMemory> NodeSharedMemories::take(const NodeSharedMemory::Group& group) {
  const std::lock_guard lock(mutex_);
  for (auto one = kept_.end(); one != kept_.begin();)
    if ((*--one)->is_of(group) && (*one)->claim()) return take(one);
  return nullptr;
}

std::shared_ptr<NodeSharedMemory> NodeSharedMemories::take(const NodeSharedMemory::Group& group,
                                                           std::uint64_t token) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const auto& room) {
    return room->token() == token && room->is_of(group);
  });
  return found == kept_.end() ? nullptr : take(found);
}

std::shared_ptr<NodeSharedMemory> NodeSharedMemories::take(Kept::iterator one) {
  auto room = std::move(*one);
  kept_.erase(one);
  room->enter();
  return lend(std::move(room));
}

void NodeSharedMemories::put(std::unique_ptr<NodeSharedMemory> room) {
  // A forked child must not change memory that its parent shares with other ranks.
  if (is_forked_child()) return;
  Kept gone;
  const std::lock_guard lock(mutex_);
  room->leave();
  kept_.push_back(std::move(room));
  gone = surplus();
}

// Removes objects that need not be kept, and returns them to be unmapped: first those that no rank
// will use again. If too many are left, it also removes the oldest ones, starting with those that
// all ranks have left. Other ranks may keep memory that this rank gives up, as long as no rank was
// told to take it for another communicator.
NodeSharedMemories::Kept NodeSharedMemories::surplus() {
  Kept gone;
  std::size_t left = kept_.size();
  const auto drop_if = [&](auto is_over) {
    for (auto& room : kept_) {
      if (!room || !is_over(*room)) continue;
      gone.push_back(std::move(room));
      --left;
    }
  };
  drop_if([](const NodeSharedMemory& room) { return room.is_retired(); });
  drop_if([&](NodeSharedMemory& room) { return left > kMost && room.retire(); });
  drop_if([&](NodeSharedMemory& room) { return left > kMostInAll && room.give_up(); });
  std::erase(kept_, nullptr);
  return gone;
}

std::size_t NodeSharedMemories::kept() {
  const std::lock_guard lock(mutex_);
  return kept_.size();
}

// The object is never destroyed, since memory may be returned to it while the process exits.
NodeSharedMemories& node_shared_memories() {
  static auto* instance = new NodeSharedMemories;
  return *instance;
}

}  // namespace weft
