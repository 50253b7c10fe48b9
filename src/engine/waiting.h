// Waiting: decides what a progress thread does when no operation progresses, from the back-off
// option and from earlier durations. It is a pure function of the times it is given. Weft's
// progress thread and the threads of simulations share it.
#pragma once

#include <cstdint>

#include "base/config.h"
#include "engine/answer_pace.h"
#include "engine/quiet_pace.h"
#include "engine/transfer_pace.h"

namespace weft {

// Rest: what a thread does until it polls again.
struct Rest {
  enum class Kind : std::uint8_t {
    none,   // poll again at once
    yield,  // yield the core, then poll again
    sleep,  // sleep for `ns` nanoseconds, whatever happens
    doze,   // sleep for `ns` nanoseconds, or until another thread calls this one
    idle,   // sleep until another thread calls this one
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

  // Begins to measure the duration of a round. Must be called when an operation arrives after a
  // time without any. now_ns: the current time.
  void begin(std::int64_t now_ns);
  // Records that an operation has completed a round now.
  void progressed(std::int64_t now_ns);
  // Returns what to do if there are operations but none can continue. hides_rounds: true if some
  // operation may have progressed without completing a round, so that it must be polled again at
  // once. transfers: true if transfers must be polled in time as well.
  Rest among_operations(std::int64_t now_ns, bool hides_rounds = false, bool transfers = false);
  // Notes how long a yield took. After a long one the thread sleeps instead of yielding for a
  // while: another thread that computes keeps the core until the next tick of the scheduler, but
  // the kernel returns the core at once when a sleep ends.
  void yielded(std::int64_t took_ns) {
    if (took_ns > kQuickYield_ns) dozes_for_yields_ = kRemembered;
  }

  // Returns what to do if there are no operations. answered: number of windows that other ranks may
  // lock (AnswerPace). The other arguments are those of TransferPace::sleep_ns().
  Rest without_operations(std::int64_t now_ns, int transfers, std::uint32_t started,
                          std::uint32_t opened = 0, int exposed = 0, int answered = 0);
  // Returns whether transfers must be polled now. It is for times with operations, in which nobody
  // wakes the thread for new transfers.
  bool is_look_due(std::int64_t now_ns, int transfers, std::uint32_t started,
                   std::uint32_t opened = 0, int answered = 0);
  // Returns whether the MPI library should be called once more in this poll. calls: number of calls
  // so far. now_ns: time at the end of the last one. took_ns: its duration. answered: number of
  // windows that other ranks may lock.
  bool look_continues(int calls, std::int64_t now_ns, std::int64_t took_ns, int answered = 0);

 private:
  std::int64_t sleep_for_transfers_ns(std::int64_t now_ns, int transfers, std::uint32_t started,
                                      std::uint32_t opened, int exposed, int answered);

  static constexpr std::int64_t kQuickYield_ns = 500'000;
  static constexpr int kRemembered = 256;  // number of sleeps after which the thread yields again

  BackOff backoff_;
  QuietPace quiet_pace_;
  TransferPace transfer_pace_;
  TransferLook transfer_look_;
  AnswerPace answer_pace_;
  std::int64_t next_look_ns_ = 0;  // time of the next poll for transfers while there are operations
  int dozes_for_yields_ = 0;
};

}  // namespace weft
