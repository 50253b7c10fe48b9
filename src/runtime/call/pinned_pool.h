// PinnedPool: host memory that is registered with the GPU's driver (pinned), for copies of data in
// GPU memory. Registering takes longer than most collectives, so the memory is kept for later
// calls. Its pages stay the same, so that network libraries that register memory need to do so only
// once, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/call/device_driver.h"

namespace weft {

class PinnedPool {
 public:
  // The most bytes and blocks that are kept for later calls.
  static constexpr std::int64_t kMostKept_bytes = std::int64_t{256} << 20;
  static constexpr std::size_t kMostKept = 64;
  // The most bytes that are registered at a time. Memory beyond that is not registered, so that
  // copies take longer.
  static constexpr std::int64_t kMostPinned_bytes = std::int64_t{2} << 30;

  // A piece of host memory. pin: empty if it is not registered.
  struct Block {
    std::byte* memory = nullptr;
    std::int64_t bytes = 0;
    const DeviceDriver* driver = nullptr;
    Pin pin{};
  };

  static PinnedPool& own();

  // Returns memory for copies of the GPU memory at `device`; nullptr as memory if there is none.
  // All functions are thread-safe.
  Block take(const DeviceDriver& driver, const std::byte* device, std::int64_t bytes);
  void give_back(const Block& block);
  // Frees the memory that no call uses.
  void release();

 private:
  Block take_kept(const DeviceDriver& driver, std::int64_t bytes);
  Block make(const DeviceDriver& driver, const std::byte* device, std::int64_t bytes);
  void pin(Block& block, const std::byte* device);
  void free(const Block& block);

  std::mutex mutex_;  // guards the next three members
  std::vector<Block> kept_;
  std::int64_t kept_bytes_ = 0;
  std::int64_t pinned_bytes_ = 0;
};

}  // namespace weft
