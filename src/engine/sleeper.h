// Sleeper: how a thread falls asleep without missing what others have for it. The thread says that
// it falls asleep before it looks for news a last time, and the others look whether it does after
// they have told their news, so that one of the two always sees the other; and a call between that
// look and the sleep keeps it awake.
// Why apart from atomics and futexes: the search over all orders of accesses runs this very code.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/futex.h"

namespace weft {

// Dozing, it wakes by itself soon enough for what it knows of.
enum class Asleep : std::uint8_t { no, dozing, deeply };

// The word by which a thread is called; and what it says of itself.
class SleepWords {
 public:
  static constexpr std::int64_t kNoLimit = 0;

  // Another word than its own. Before anybody may call.
  void use(std::atomic<std::uint32_t>& word, FutexOf of) {
    word_ = &word;
    of_ = of;
  }
  std::uint32_t calls() const { return word_->load(); }
  void count_call() const { word_->fetch_add(1); }
  void wake() const { wake_one(*word_, of_); }
  // Not at all where it has been called since there were so many calls.
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

  // By the thread: until it is called, or after ns at the latest; not at all where there are news.
  // True: it has been called, or there were.
  template <class HasNews>
  bool sleep(Asleep how, std::int64_t ns, HasNews has_news) {
    const std::uint32_t calls = words.calls();
    words.say(how);
    const bool has = has_news();
    if (!has) words.sleep(calls, ns);
    words.say(Asleep::no);
    return has || words.calls() != calls;
  }

  // By others, who have told their news: if it sleeps so deeply, and there is something for it.
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
