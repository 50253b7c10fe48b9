// Implements Endpoint: carries out a rank's steps in virtual time. A step that takes time is
// refused until the thread that advances the operation has spent that time.
#include "sim/endpoint.h"

#include <algorithm>
#include <utility>

namespace weft::sim {
namespace {

// Bytes below which a reduction or copy gets no event of its own. Its time is added to what the
// core must still spend.
constexpr double kShort_bytes = 4096;

bool is_message(const Step& step) {
  return step.kind == StepKind::send || step.kind == StepKind::recv;
}

}  // namespace

Levels::Levels(int ranks, Kind kind, Told& told)
    : up_(goes_up(kind)), told_(told), left_(messages_of_levels(ranks)) {
  open_ = up_ ? 1 : static_cast<int>(left_.size()) - 1;
  skip_empty();
}

void Levels::skip_empty() {
  while (open_ > 0 && open_ < static_cast<int>(left_.size()) &&
         left_[static_cast<std::size_t>(open_)] == 0)
    open_ += up_ ? 1 : -1;
}

void Levels::taken_in(int level, double now_us) {
  if (--left_[static_cast<std::size_t>(level)] > 0) return;
  skip_empty();
  for (const int rank : std::exchange(waiting_, {})) told_.tell(rank, now_us);
}

bool Endpoint::may_start(const Step& step) {
  const auto index = static_cast<std::uint32_t>(&step - schedule_.steps.data());
  if (index >= limit_) {
    is_at_limit_ = true;
    return false;
  }
  if (!levels_ || !is_message(step)) return true;
  if (levels_->is_open(level_of(schedule_.shape, step.peer))) return true;
  levels_->wait(schedule_.shape.rank);
  return false;
}

Result<bool> Endpoint::start(const Step& step) {
  if (!may_start(step)) return false;
  if (is_local(step.kind)) return local(step);
  if (!is_message(step))
    return Error{"the simulator does not know how the MPI library carries out collectives"};
  post(step);
  return true;
}

// Carries out a reduction or copy. Returns false as long as its time has not been spent. A
// reduction and the copy of its result are carried out together.
bool Endpoint::local(const Step& step) {
  if (step.fused == Fused::with_before) return true;
  const bool reduces = step.kind == StepKind::reduce;
  const Layout& of = schedule_.shape.recv;
  const auto data = static_cast<double>(of.count * of.size);
  const double slower = reduces ? machine_.copies_of_reduction(data, step.fused == Fused::with_next)
                                : machine_.copies_of_copy(data);
  const double bytes = static_cast<double>(step.bytes) * slower;
  if (bytes <= kShort_bytes) {
    debt_us_ += bytes / machine_.core_copy;
  } else if (!std::exchange(local_done_, false)) {
    job_ = Job::local;
    job_bytes_ = bytes;
    return false;
  }
  if (reduces && levels_) levels_->taken_in(last_level_, now_us_);
  return true;
}

void Endpoint::post(const Step& step) {
  const auto side = step.kind == StepKind::send ? Messages::Side::send : Messages::Side::recv;
  const auto bytes = static_cast<double>(payload_bytes(schedule_.shape, step.first));
  const int level = levels_ ? level_of(schedule_.shape, step.peer) : 0;
  posted_.push_back(
      {messages_.post(side, schedule_.shape.rank, step.peer, bytes, now_us_, debt_us_), side,
       level});
}

Result<bool> Endpoint::test() {
  std::size_t kept = 0;
  for (const Posted& posted : posted_) {
    const auto need = messages_.need(posted.id, posted.side, now_us_, debt_us_);
    if (need.kind == Messages::Need::Kind::nothing) {
      messages_.finish(posted.id, posted.side, debt_us_);
      if (!levels_ || posted.side == Messages::Side::send) continue;
      last_level_ = posted.level;
      if (!reduces(schedule_.shape.kind)) levels_->taken_in(posted.level, now_us_);
      continue;
    }
    look_at_us_ = std::min(look_at_us_, need.at_us);
    if (need.kind == Messages::Need::Kind::copy && job_ == Job::none) {
      job_ = Job::message;
      job_bytes_ = need.bytes;
      job_of_ = posted;
    }
    posted_[kept++] = posted;
  }
  posted_.resize(kept);
  return kept == 0;
}

void Endpoint::job_done(double now_us) {
  if (job_ == Job::message)
    messages_.copied(job_of_.id, job_of_.side, now_us);
  else
    local_done_ = true;
  job_ = Job::none;
}

}  // namespace weft::sim
