// Turns: operations use a shared resource one after the other, in the order in which they were
// started. An operation waits for its turn without blocking. This cannot deadlock: an operation
// depends only on itself and on operations with earlier turns.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft {

class Turns {
 public:
  // Returns the next turn. Only one thread at a time, which starts operations, may call it.
  std::uint32_t take() { return taken_.fetch_add(1, std::memory_order_relaxed); }

  bool has_come(std::uint32_t turn) const {
    return current_.load(std::memory_order_acquire) == turn;
  }
  // Ends this turn, so that the next one may begin. Is called by the operation that has the turn.
  void end(std::uint32_t turn) { current_.store(turn + 1, std::memory_order_release); }

  // Lets no later turn begin. Is called if an operation fails before its turn is over.
  void stop() { stopped_.store(true, std::memory_order_release); }
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint32_t> taken_{0};
  std::atomic<std::uint32_t> current_{0};  // the turn under way; stored in release order, which
                                           // pairs with has_come() of the next operation
  std::atomic<bool> stopped_{false};
};

}  // namespace weft
