// Waiting: decides what a progress thread does when nothing progresses, by its back-off and its
// experience. It is a pure function of the times it is given, and is shared by the library's thread
// and the threads of simulations.
#pragma once

#include <cstdint>

#include "base/config.h"
#include "engine/pace.h"
#include "engine/quiet_pace.h"
#include "engine/transfer_pace.h"

namespace weft {

// A thread's behaviour until its next look.
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

  // Returns whether threads on one core call each other.
  bool takes_turns() const { return backoff_.kind == BackOff::Kind::baton; }

  // Returns whether times are needed while there are operations.
  bool keeps_time() const { return takes_turns() || backoff_.kind == BackOff::Kind::quiet; }

  // Must be called when there are operations after a time without.
  void begin(std::int64_t now_ns);
  // Must be called when an operation has completed a round.
  void progressed(std::int64_t now_ns);
  // Returns what to do while no operation can continue. hides_rounds: some may progress unseen, and
  // are polled again at once. transfers: there are transfers as well, whose look must not be late.
  Rest among_operations(std::int64_t now_ns, bool hides_rounds = false, bool transfers = false);
  // Notes how long a yield took. A thread that computes keeps the core until the next tick, so that
  // a doze, after which the core is given back at once, is shorter.
  void yielded(std::int64_t took_ns) {
    if (took_ns > kQuickYield_ns) dozes_for_yields_ = kRemembered;
  }

  // Returns what to do while there are no operations; the arguments are those of TransferPace.
  Rest without_operations(std::int64_t now_ns, int transfers, std::uint32_t started,
                          std::uint32_t opened = 0, int exposed = 0);
  // Returns whether the transfers are to be looked at now, while there are also operations and
  // nobody wakes the thread for more.
  bool is_look_due(std::int64_t now_ns, int transfers, std::uint32_t started,
                   std::uint32_t opened = 0);
  // Returns whether another call of the library follows in this look, after `calls`, the last of
  // which took `took_ns`.
  bool look_continues(int calls, std::int64_t took_ns) {
    const bool continues = transfer_look_.continues(calls, took_ns);
    if (continues && calls > 1) transfer_pace_.moved();
    return continues;
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
