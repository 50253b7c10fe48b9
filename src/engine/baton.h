// Baton: progress threads of several ranks on one core take turns without being switched blindly.
// Each sleeps as long as its Pace says and is called earlier by whoever on its core has got
// something done, since what one rank's thread has sent is most likely what its neighbour's waits
// for. Why: threads that yield are switched by the kernel whether they have something to do or not,
// and with several on a core that is the bottleneck (JHPCN jh250041, Topic 1). A thread that ends
// with its process is called in vain; nobody waits for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace weft {

class Baton {
 public:
  // One for each thread, in memory that their processes share; zeroes.
  struct alignas(64) Place {
    std::atomic<std::uint32_t> calls;   // by the others; the sleeper's futex
    std::atomic<std::uint32_t> sleeps;  // by its owner; pairs with calls
  };

  // memory: what holds the places. own: this thread's, others: those on its core.
  Baton(std::shared_ptr<void> memory, Place* own, std::vector<Place*> others);
  // Alone on its core.
  Baton();

  // Before the look for work that sleep() follows: a call that comes in between ends the sleep.
  std::uint32_t calls() const { return own_->calls.load(); }
  // Until somebody calls, or so long.
  void sleep(std::uint32_t calls_before, std::int64_t ns);
  // Those on this core that sleep.
  void call_others();

 private:
  std::shared_ptr<void> memory_;
  Place* own_;
  std::vector<Place*> others_;
};

}  // namespace weft
