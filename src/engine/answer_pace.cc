#include "engine/answer_pace.h"

#include <algorithm>

namespace weft {
namespace {

// A call of the MPI library counts as one that has received something if it takes longer than the
// usual first call (kTimesUsual) or than the shortest later call (kTimesLeast), by these factors.
// The two kinds are told apart because a first call has cold caches, so that its duration varies
// more.
constexpr std::int64_t kTimesUsual = 4, kTimesLeast = 4;
// The sleep until the next poll is the time since the last arrival, multiplied by this factor.
constexpr std::int64_t kTimesPassed = 3;
// A new measurement changes a learnt duration by at most one part in this many.
constexpr std::int64_t kParts = 32;

}  // namespace

std::int64_t AnswerPace::sleep_ns(std::int64_t now_ns) const {
  return std::clamp(kTimesPassed * (now_ns - arrived_ns_), kLeast_ns, kMost_ns);
}

bool AnswerPace::continues(int calls, std::int64_t now_ns, std::int64_t took_ns) {
  has_arrived_ = calls == 1 ? first_is_long(took_ns) : later_is_long(took_ns);
  if (calls == 1) arrivals_ = 0;
  if (calls == 1 || has_arrived_) quiet_since_ns_ = now_ns;
  if (!has_arrived_) return now_ns - quiet_since_ns_ < kLinger_ns;
  arrived_ns_ = now_ns;
  if (++arrivals_ < kMostArrivals) return true;
  least_ns_ += least_ns_ / kParts + 1;  // the shortest call may have become slower
  return false;
}

// Returns whether the first call of a poll has received something. The usual duration that it
// learns is about the median: longer and shorter calls change it by the same factor.
bool AnswerPace::first_is_long(std::int64_t took_ns) {
  const bool is_long = usual_first_ns_ > 0 && took_ns > kTimesUsual * usual_first_ns_;
  if (usual_first_ns_ == 0) usual_first_ns_ = took_ns;
  usual_first_ns_ += (took_ns > usual_first_ns_ ? 1 : -1) * (usual_first_ns_ / kParts);
  return is_long;
}

bool AnswerPace::later_is_long(std::int64_t took_ns) {
  if (least_ns_ == 0 || took_ns < least_ns_) least_ns_ = took_ns;
  return took_ns > kTimesLeast * least_ns_;
}

}  // namespace weft
