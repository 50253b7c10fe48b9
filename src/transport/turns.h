// Turns: makes operations use a shared resource one after the other, in the order in which they
// were started. An operation waits for its turn without blocking. This cannot deadlock: an
// operation depends only on itself and on operations with earlier turns.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft {

class Turns {
 public:
  // Returns a new turn, which comes after all earlier ones. Only the thread that starts operations
  // may call it, one at a time.
  std::uint32_t take() { return taken_.fetch_add(1, std::memory_order_relaxed); }

  bool has_come(std::uint32_t turn) const {
    return current_.load(std::memory_order_acquire) == turn;
  }
  // Ends this turn, so that the next one may begin. The operation that has the turn calls it.
  void end(std::uint32_t turn) { current_.store(turn + 1, std::memory_order_release); }

  // Lets no later turn begin. It is called if an operation fails before its turn is over.
  void stop() { stopped_.store(true, std::memory_order_release); }
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint32_t> taken_{0};
  // The current turn; its release store pairs with has_come() of the next operation.
  std::atomic<std::uint32_t> current_{0};
  std::atomic<bool> stopped_{false};
};

}  // namespace weft
