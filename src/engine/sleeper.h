// Sleeper: lets a thread fall asleep without missing a wake-up. The thread announces its sleep
// before its last check for news. Other threads read that announcement after they have published
// their news, so that at least one side sees the other. A call between the check and the sleep
// keeps the thread awake. The class is a template so that a test can search all orders of its
// memory accesses.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/futex.h"

namespace weft {

// Says how deeply a thread sleeps. no: it is awake. dozing: it wakes by itself in time for what it
// expects. deeply: only a call by another thread wakes it.
enum class Asleep : std::uint8_t { no, dozing, deeply };

// SleepWords: the futex word by which a thread is called, and the word in which it announces its
// sleep.
class SleepWords {
 public:
  static constexpr std::int64_t kNoLimit = 0;

  // Replaces the thread's futex word by another, and the place of the announcement. Must precede
  // the first call.
  void use(std::atomic<std::uint32_t>& word, std::atomic<Asleep>& asleep, FutexOf of) {
    word_ = &word;
    asleep_ = &asleep;
    of_ = of;
  }
  std::uint32_t calls() const { return word_->load(); }
  void count_call() const { word_->fetch_add(1); }
  void wake() const { wake_one(*word_, of_); }
  // Sleeps, unless the thread has been called since its counter had the value `calls`. ns: the
  // longest time in nanoseconds, or kNoLimit.
  void sleep(std::uint32_t calls, std::int64_t ns) const {
    if (ns == kNoLimit)
      sleep_on(*word_, calls, of_);
    else
      sleep_on(*word_, calls, of_, ns);
  }
  void say(Asleep how) { asleep_->store(how); }
  Asleep said() const { return asleep_->load(); }

 private:
  std::atomic<std::uint32_t> own_{0};
  std::atomic<std::uint32_t>* word_ = &own_;
  std::atomic<Asleep> own_asleep_{Asleep::no};
  std::atomic<Asleep>* asleep_ = &own_asleep_;
  FutexOf of_ = FutexOf::this_process;
};

template <class Words = SleepWords>
class Sleeper {
 public:
  Words words{};

  // Makes the calling thread sleep until another thread calls it, but for `ns` nanoseconds at most.
  // It does not sleep if has_news() returns true. Returns true if has_news() did, or if the thread
  // was called.
  template <class HasNews>
  bool sleep(Asleep how, std::int64_t ns, HasNews has_news) {
    const std::uint32_t calls = words.calls();
    words.say(how);
    const bool has = has_news();
    if (!has) words.sleep(calls, ns);
    words.say(Asleep::no);
    return has || words.calls() != calls;
  }

  // Wakes the thread if it sleeps at least as deeply as `least`, and if has_work() returns true.
  // Other threads must call this after they have published their news.
  template <class HasWork>
  void wake_from(Asleep least, HasWork has_work) {
    if (words.said() >= least && has_work()) call();
  }
  void call() {
    words.count_call();
    words.wake();
  }
};

}  // namespace weft
