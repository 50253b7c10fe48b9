// Baton: progress threads of several ranks on one core take turns with few context switches. Each
// thread sleeps as long as its Pace says. A thread that has made progress wakes the others on its
// core, because they most likely wait for the message that it has sent. The kernel switches threads
// that yield even if they have no work; with several threads on a core this is the bottleneck
// (JHPCN jh250041, Topic 1). Waking a thread whose process has ended has no effect.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace weft {

class Baton {
 public:
  // A thread's entry, in zeroed memory that the threads' processes share.
  struct alignas(64) Place {
    std::atomic<std::uint32_t> calls;   // raised by other threads; the sleeping thread's futex
    std::atomic<std::uint32_t> sleeps;  // written by the entry's owner; ordered against `calls`
  };

  // memory: keeps the entries alive. own: this thread's entry. others: the entries of the other
  // threads on its core.
  Baton(std::shared_ptr<void> memory, Place* own, std::vector<Place*> others);
  // Makes a baton for a thread that is alone on its core.
  Baton();

  // Returns how often other threads have called this one. Read it before the last check for work
  // that precedes sleep(), so that a call after that check ends the sleep.
  std::uint32_t calls() const { return own_->calls.load(); }
  // Sleeps until another thread calls, or for `ns` nanoseconds. calls_before: the value of calls()
  // before the last check for work.
  void sleep(std::uint32_t calls_before, std::int64_t ns);
  // Wakes the sleeping threads that share the baton.
  void call_others();

 private:
  std::shared_ptr<void> memory_;
  Place* own_;
  std::vector<Place*> others_;
};

}  // namespace weft
