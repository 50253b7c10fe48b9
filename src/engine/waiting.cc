// Implements Waiting: what a progress thread does under each value of the back-off option.
#include "engine/waiting.h"

#include <algorithm>

namespace weft {

void Waiting::begin(std::int64_t now_ns) {
  quiet_pace_.begin(now_ns);
}

void Waiting::progressed(std::int64_t now_ns) {
  if (backoff_.kind == BackOff::Kind::quiet) quiet_pace_.progressed(now_ns);
}

Rest Waiting::among_operations(std::int64_t now_ns, bool hides_rounds, bool transfers) {
  switch (backoff_.kind) {
    case BackOff::Kind::spin:
      return {};
    case BackOff::Kind::yield:
      return {.kind = Rest::Kind::yield};
    case BackOff::Kind::sleep:
      return {.kind = Rest::Kind::sleep, .ns = backoff_.sleep_us * 1000};
    case BackOff::Kind::quiet:
      break;
  }
  std::int64_t ns = hides_rounds ? 0 : quiet_pace_.sleep_ns(now_ns);
  if (ns == 0 && (hides_rounds || dozes_for_yields_ == 0)) return {.kind = Rest::Kind::yield};
  if (ns == 0) {
    --dozes_for_yields_;
    ns = QuietPace::kLeast_ns;
  }
  if (transfers) ns = std::min(ns, std::max(next_look_ns_ - now_ns, QuietPace::kLeast_ns));
  return {.kind = Rest::Kind::doze, .ns = ns};
}

// Returns how many nanoseconds to sleep; 0 if no transfer is in progress now or was lately.
std::int64_t Waiting::sleep_for_transfers_ns(std::int64_t now_ns, int transfers,
                                             std::uint32_t started, std::uint32_t opened,
                                             int exposed, int answered) {
  const std::int64_t ns =
      transfer_pace_.sleep_ns(now_ns, transfers - answered, started, opened, exposed);
  if (answered == 0) return ns;
  const std::int64_t to_answer_ns = answer_pace_.sleep_ns(now_ns);
  return ns == 0 ? to_answer_ns : std::min(ns, to_answer_ns);
}

Rest Waiting::without_operations(std::int64_t now_ns, int transfers, std::uint32_t started,
                                 std::uint32_t opened, int exposed, int answered) {
  const std::int64_t ns =
      sleep_for_transfers_ns(now_ns, transfers, started, opened, exposed, answered);
  return {.kind = ns > 0 ? Rest::Kind::doze : Rest::Kind::idle,
          .ns = ns,
          .until_more = ns > TransferPace::kMost_ns};
}

bool Waiting::is_look_due(std::int64_t now_ns, int transfers, std::uint32_t started,
                          std::uint32_t opened, int answered) {
  if (now_ns < next_look_ns_) return false;
  next_look_ns_ = now_ns + sleep_for_transfers_ns(now_ns, transfers, started, opened, 0, answered);
  return true;
}

bool Waiting::look_continues(int calls, std::int64_t now_ns, std::int64_t took_ns, int answered) {
  if (answered > 0) {
    const bool continues = answer_pace_.continues(calls, now_ns, took_ns);
    if (answer_pace_.has_arrived()) transfer_pace_.moved();
    return continues;
  }
  const bool continues = transfer_look_.continues(calls, took_ns);
  if (continues && calls > 1) transfer_pace_.moved();
  return continues;
}

}  // namespace weft
