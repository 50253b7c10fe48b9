// Baton: progress threads of several ranks on one core take turns without needless context
// switches. Each sleeps as long as its Pace says, and is woken earlier when another one on its core
// has made progress: a message that one rank's thread has sent is most likely awaited by its
// neighbour's. Threads that yield are switched by the kernel whether they have work or not, which
// is the bottleneck with several threads on a core (JHPCN jh250041, Topic 1). Waking a thread that
// ended with its process has no effect, and nobody waits for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace weft {

class Baton {
 public:
  // A thread's place, in zeroed memory that the threads' processes share.
  struct alignas(64) Place {
    std::atomic<std::uint32_t> calls;   // by the others; the sleeper's futex
    std::atomic<std::uint32_t> sleeps;  // by its owner; pairs with calls
  };

  // memory: keeps the places alive. own: this thread's place; others: those on its core.
  Baton(std::shared_ptr<void> memory, Place* own, std::vector<Place*> others);
  // Makes a baton for a thread that is alone on its core.
  Baton();

  // Must be read before the look for work that precedes sleep(): a wake-up in between ends the
  // sleep.
  std::uint32_t calls() const { return own_->calls.load(); }
  // Sleeps until another thread calls, or for `ns`.
  void sleep(std::uint32_t calls_before, std::int64_t ns);
  // Wakes the sleeping threads on this core.
  void call_others();

 private:
  std::shared_ptr<void> memory_;
  Place* own_;
  std::vector<Place*> others_;
};

}  // namespace weft
