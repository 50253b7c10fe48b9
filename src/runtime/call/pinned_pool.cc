#include "runtime/call/pinned_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <string>
#include <utility>

#include "base/log.h"

namespace weft {
namespace {

constexpr std::int64_t kLeast_bytes = 4096;       // a page
constexpr std::int64_t kInSteps_bytes = 1 << 20;  // longer blocks are multiples of this

// Returns the size of the block for so many bytes. There are few sizes, so that blocks are often
// reused.
std::int64_t rounded(std::int64_t bytes) {
  if (bytes > kInSteps_bytes) return (bytes + kInSteps_bytes - 1) / kInSteps_bytes * kInSteps_bytes;
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max(bytes, kLeast_bytes))));
}

// Forked children do not inherit the pages: the kernel would otherwise give this process new pages
// when it writes to them, while the device continues to use the old ones.
std::byte* mapped(std::int64_t bytes) {
  const auto length = static_cast<std::size_t>(bytes);
  void* const memory =
      mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, length, MADV_DONTFORK);
  return static_cast<std::byte*>(memory);
}

void say_not_pinned() {
  static std::atomic<bool> is_said{false};
  if (!is_said.exchange(true))
    say("the GPU's driver pins no more host memory: collectives on GPU memory take longer; leave "
        "more of the node's memory free");
}

}  // namespace

// The pool is never destroyed, because a thread may give back a block while the process exits.
PinnedPool& PinnedPool::own() {
  static auto* const pool = new PinnedPool;
  return *pool;
}

PinnedPool::Block PinnedPool::take(const DeviceDriver& driver, const std::byte* device,
                                   std::int64_t bytes) {
  const std::int64_t wanted = rounded(bytes);
  Block block = take_kept(driver, wanted);
  if (!block.memory) block = make(driver, device, wanted);
  return block;
}

// Returns the smallest kept block that has room, unless more than half of it would stay unused.
// Blocks whose registration has ended with its context are freed.
PinnedPool::Block PinnedPool::take_kept(const DeviceDriver& driver, std::int64_t bytes) {
  std::vector<Block> gone;
  Block best;
  {
    const std::lock_guard lock(mutex_);
    const auto first_gone =
        std::stable_partition(kept_.begin(), kept_.end(),
                              [&](const Block& one) { return !one.pin || driver.holds(one.pin); });
    gone.assign(first_gone, kept_.end());
    kept_.erase(first_gone, kept_.end());
    for (const Block& one : gone) kept_bytes_ -= one.bytes;
    auto found = kept_.end();
    for (auto it = kept_.begin(); it != kept_.end(); ++it) {
      const bool fits = it->bytes >= bytes && it->bytes / 2 <= bytes;
      if (fits && (found == kept_.end() || it->bytes < found->bytes)) found = it;
    }
    if (found != kept_.end()) {
      best = *found;
      kept_bytes_ -= best.bytes;
      kept_.erase(found);
    }
  }
  for (const Block& one : gone) free(one);
  return best;
}

PinnedPool::Block PinnedPool::make(const DeviceDriver& driver, const std::byte* device,
                                   std::int64_t bytes) {
  Block made{mapped(bytes), bytes, &driver, {}};
  if (!made.memory) {
    release();
    made.memory = mapped(bytes);
  }
  if (made.memory && driver.pins()) pin(made, device);
  return made;
}

void PinnedPool::pin(Block& block, const std::byte* device) {
  {
    const std::lock_guard lock(mutex_);
    if (pinned_bytes_ + block.bytes > kMostPinned_bytes) return say_not_pinned();
    pinned_bytes_ += block.bytes;
  }
  block.pin = block.driver->pin(block.memory, block.bytes, device);
  if (!block.pin) {
    release();
    block.pin = block.driver->pin(block.memory, block.bytes, device);
  }
  if (block.pin) return;
  const std::lock_guard lock(mutex_);
  pinned_bytes_ -= block.bytes;
  say_not_pinned();
}

void PinnedPool::give_back(const Block& block) {
  if (!block.memory) return;
  std::vector<Block> too_many;
  {
    const std::lock_guard lock(mutex_);
    kept_.push_back(block);
    kept_bytes_ += block.bytes;
    while (kept_bytes_ > kMostKept_bytes || kept_.size() > kMostKept) {
      kept_bytes_ -= kept_.front().bytes;
      too_many.push_back(kept_.front());
      kept_.erase(kept_.begin());
    }
  }
  for (const Block& one : too_many) free(one);
}

void PinnedPool::release() {
  std::vector<Block> all;
  {
    const std::lock_guard lock(mutex_);
    all = std::exchange(kept_, {});
    kept_bytes_ = 0;
  }
  for (const Block& one : all) free(one);
}

void PinnedPool::free(const Block& block) {
  if (block.pin) {
    block.driver->unpin(block.memory, block.pin);
    const std::lock_guard lock(mutex_);
    pinned_bytes_ -= block.bytes;
  }
  munmap(block.memory, static_cast<std::size_t>(block.bytes));
}

}  // namespace weft
