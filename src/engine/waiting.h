// Waiting: what a progress thread does when nothing goes on, by its back-off and by what it has
// seen. A pure function of the times it is told: the library's thread does what it says, and so do
// the threads of a simulation.
#pragma once

#include <cstdint>

#include "base/config.h"
#include "engine/pace.h"
#include "engine/quiet_pace.h"
#include "engine/transfer_pace.h"

namespace weft {

// Until the next look.
struct Rest {
  enum class Kind : std::uint8_t {
    none,   // it looks again at once
    yield,  // others may run first
    sleep,  // for ns, whatever comes
    doze,   // for ns, unless it is called
    idle,   // until it is called
  };

  Kind kind = Kind::none;
  std::int64_t ns = 0;
  bool calls_others = false;  // the threads on the same core look first
  bool until_more = false;    // of a doze: also where more transfers come
};

class Waiting {
 public:
  explicit Waiting(BackOff backoff) : backoff_(backoff) {}

  // Threads on one core call each other.
  bool takes_turns() const { return backoff_.kind == BackOff::Kind::baton; }

  // It needs to know what time it is among operations.
  bool keeps_time() const { return takes_turns() || backoff_.kind == BackOff::Kind::quiet; }

  // There are operations after a time without.
  void begin(std::int64_t now_ns);
  // One of them has gone on by a round.
  void progressed(std::int64_t now_ns);
  // None of them can go on. hides_rounds: some may have gone on unseen, and are looked at again at
  // once. transfers: there are some, too, whose look must not be late.
  Rest among_operations(std::int64_t now_ns, bool hides_rounds = false, bool transfers = false);
  // The core was somebody else's for so long when others could run first. One who computes keeps it
  // up to the next tick, so that a doze, after which it is given back at once, is shorter.
  void yielded(std::int64_t took_ns) {
    if (took_ns > kQuickYield_ns) dozes_for_yields_ = kRemembered;
  }

  // There are no operations, but so many transfers of the application's; started, opened, exposed:
  // as TransferPace has them.
  Rest without_operations(std::int64_t now_ns, int transfers, std::uint32_t started,
                          std::uint32_t opened = 0, int exposed = 0);
  // Beside operations, where nobody calls the thread for more of them: whether transfers, so many,
  // are to be looked at now.
  bool is_look_due(std::int64_t now_ns, int transfers, std::uint32_t started,
                   std::uint32_t opened = 0);
  // At a look, after so many calls of the library, of which the last one took so long: whether
  // another one follows.
  bool look_goes_on(int calls, std::int64_t took_ns) {
    const bool goes_on = transfer_look_.goes_on(calls, took_ns);
    if (goes_on && calls > 1) transfer_pace_.moved();
    return goes_on;
  }

 private:
  static constexpr std::int64_t kQuickYield_ns = 500'000;
  static constexpr int kRemembered = 256;  // dozes until it yields again

  BackOff backoff_;
  Pace pace_;
  QuietPace quiet_pace_;
  TransferPace transfer_pace_;
  TransferLook transfer_look_;
  std::int64_t next_look_ns_ = 0;  // at transfers, while there are operations
  int dozes_for_yields_ = 0;
  bool has_news_ = false;  // something has gone on since the others were called last
};

}  // namespace weft
