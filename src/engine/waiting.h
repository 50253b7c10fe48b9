// Waiting: decides what a progress thread does when no operation progresses, by the back-off option
// and its experience. It is a pure function of the times it is given. The library's thread and the
// threads of simulations share it.
#pragma once

#include <cstdint>

#include "base/config.h"
#include "engine/answer_pace.h"
#include "engine/quiet_pace.h"
#include "engine/transfer_pace.h"

namespace weft {

// The thread's behaviour until it polls again.
struct Rest {
  enum class Kind : std::uint8_t {
    none,   // poll again at once
    yield,  // yield the core, then poll again
    sleep,  // sleep for `ns`, whatever happens
    doze,   // sleep for `ns`, or until the thread is called
    idle,   // sleep until the thread is called
  };

  Kind kind = Kind::none;
  std::int64_t ns = 0;
  bool until_more = false;  // for `doze`: more transfers also end the sleep
};

class Waiting {
 public:
  explicit Waiting(BackOff backoff) : backoff_(backoff) {}

  // Returns whether among_operations() needs the current time.
  bool keeps_time() const { return backoff_.kind == BackOff::Kind::quiet; }

  // Begins to measure the duration of a round. Must be called when the first operation arrives
  // after a time without any. now_ns: the current time.
  void begin(std::int64_t now_ns);
  // Records that an operation has completed a round now.
  void progressed(std::int64_t now_ns);
  // Returns what to do while no operation can continue. hides_rounds: some operations may progress
  // unseen, and are polled again at once. transfers: transfers must be polled in time as well.
  Rest among_operations(std::int64_t now_ns, bool hides_rounds = false, bool transfers = false);
  // Notes how long a yield took. If it took long, the thread dozes instead of yielding for a while:
  // a thread that computes keeps the core until the next tick; then a doze, after which the kernel
  // returns the core at once, is shorter than a yield.
  void yielded(std::int64_t took_ns) {
    if (took_ns > kQuickYield_ns) dozes_for_yields_ = kRemembered;
  }

  // Returns what to do while there are no operations. answered: how many transfers other ranks may
  // begin and wait for (AnswerPace). The other arguments are those of TransferPace::sleep_ns().
  Rest without_operations(std::int64_t now_ns, int transfers, std::uint32_t started,
                          std::uint32_t opened = 0, int exposed = 0, int answered = 0);
  // Returns whether transfers must be polled now. Is used while there are also operations, since
  // then nobody wakes the thread for new transfers.
  bool is_look_due(std::int64_t now_ns, int transfers, std::uint32_t started,
                   std::uint32_t opened = 0, int answered = 0);
  // Returns whether the library should be called once more. calls: calls so far in succession;
  // now_ns: end of the last one; took_ns: its duration.
  bool look_continues(int calls, std::int64_t now_ns, std::int64_t took_ns, int answered = 0);

 private:
  std::int64_t sleep_for_transfers_ns(std::int64_t now_ns, int transfers, std::uint32_t started,
                                      std::uint32_t opened, int exposed, int answered);

  static constexpr std::int64_t kQuickYield_ns = 500'000;
  static constexpr int kRemembered = 256;  // number of dozes until the thread yields again

  BackOff backoff_;
  QuietPace quiet_pace_;
  TransferPace transfer_pace_;
  TransferLook transfer_look_;
  AnswerPace answer_pace_;
  std::int64_t next_look_ns_ = 0;  // time of the next poll for transfers while there are operations
  int dozes_for_yields_ = 0;
};

}  // namespace weft
