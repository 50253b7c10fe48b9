// Sleeper: lets a thread fall asleep without missing news. The thread announces its sleep before it
// looks for news a last time, and others read that announcement after they have published their
// news, so that at least one side sees the other; a call between that look and the sleep keeps the
// thread awake. It is separate from atomics and futexes so that the search over all orders of
// accesses can run this code.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/futex.h"

namespace weft {

// A dozing thread wakes by itself early enough for the news that it expects.
enum class Asleep : std::uint8_t { no, dozing, deeply };

// The word by which a thread is called, and what the thread says of itself.
class SleepWords {
 public:
  static constexpr std::int64_t kNoLimit = 0;

  // Replaces the thread's word by another. Must precede the first call.
  void use(std::atomic<std::uint32_t>& word, FutexOf of) {
    word_ = &word;
    of_ = of;
  }
  std::uint32_t calls() const { return word_->load(); }
  void count_call() const { word_->fetch_add(1); }
  void wake() const { wake_one(*word_, of_); }
  // Sleeps, unless the thread has been called since `calls` was read.
  void sleep(std::uint32_t calls, std::int64_t ns) const {
    if (ns == kNoLimit)
      sleep_on(*word_, calls, of_);
    else
      sleep_on(*word_, calls, of_, ns);
  }
  void say(Asleep how) { asleep_.store(how); }
  Asleep said() const { return asleep_.load(); }

 private:
  std::atomic<std::uint32_t> own_{0};
  std::atomic<std::uint32_t>* word_ = &own_;
  FutexOf of_ = FutexOf::this_process;
  std::atomic<Asleep> asleep_{Asleep::no};
};

template <class Words = SleepWords>
class Sleeper {
 public:
  Words words{};

  // Is called by the thread: sleeps until it is called, or for `ns` at most, but not if there are
  // news. Returns true if it was called, or if there were news.
  template <class HasNews>
  bool sleep(Asleep how, std::int64_t ns, HasNews has_news) {
    const std::uint32_t calls = words.calls();
    words.say(how);
    const bool has = has_news();
    if (!has) words.sleep(calls, ns);
    words.say(Asleep::no);
    return has || words.calls() != calls;
  }

  // Is called by others after they have published their news: wakes the thread if it sleeps at
  // least this deeply and has_work() returns true.
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
