// Turns: makes operations do something one after the other, in the order in which they were
// started. An operation waits for its turn without blocking. There is no deadlock: what it needs
// before its turn ends depends only on itself and on operations with earlier turns.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft {

class Turns {
 public:
  // Is called by the thread that starts operations, one at a time.
  std::uint32_t take() { return taken_.fetch_add(1, std::memory_order_relaxed); }

  bool has_come(std::uint32_t turn) const {
    return current_.load(std::memory_order_acquire) == turn;
  }
  // Is called by the operation whose turn it is, when it has finished.
  void end(std::uint32_t turn) { current_.store(turn + 1, std::memory_order_release); }

  // Is called if an operation fails before its turn is over: no other may take its place.
  void stop() { stopped_.store(true, std::memory_order_release); }
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint32_t> taken_{0};
  std::atomic<std::uint32_t> current_{0};  // release: pairs with has_come() of the next
  std::atomic<bool> stopped_{false};
};

}  // namespace weft
