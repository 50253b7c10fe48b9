// Runs a schedule's rounds: start every step of a round, wait for what it posted, go on.
#include "transport/transport.h"

namespace weft {

Result<bool> Execution::advance() {
  while (round_ < schedule_->rounds()) {
    if (!round_started_) {
      const std::uint32_t end = schedule_->round_ends[round_];
      for (; next_step_ < end; ++next_step_) {
        if (auto started = transport_->start(schedule_->steps[next_step_]); !started)
          return started;
      }
      round_started_ = true;
    }
    auto done = transport_->test();
    if (!done || !*done) return done;
    round_started_ = false;
    ++round_;
  }
  return true;
}

}  // namespace weft
