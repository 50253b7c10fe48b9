// What one rank's schedule shows by itself, round by round.
// Regions are counted in bytes in temp, and as UserBuffer says in the user's buffers.
#include <algorithm>
#include <array>

#include "schedule/interval_set.h"
#include "schedule/user_buffer.h"
#include "schedule/verify.h"

namespace weft {
namespace {

using Failure = std::string;  // empty: none

bool is_posted(const Step& step) {
  return step.kind == StepKind::send || step.kind == StepKind::recv;
}

bool is_library(const Step& step) {
  return step.kind == StepKind::library_blocking || step.kind == StepKind::library_nonblocking;
}

bool moves_data_only(Kind kind) {
  return !reduces(kind) && kind != Kind::barrier;
}

class LocalVerifier {
 public:
  explicit LocalVerifier(const Schedule& schedule)
      : schedule_(schedule),
        shape_(schedule.shape),
        send_(shape_, Buffer::send),
        recv_(shape_, Buffer::recv) {}

  Failure verify() {
    if (Failure failure = check_rounds(); !failure.empty()) return failure;
    if (!schedule_.steps.empty() && is_library(schedule_.steps[0]))
      return schedule_.steps.size() == 1 ? "" : "a step that is the whole collective has company";
    mark_what_is_there();
    std::uint32_t begin = 0;
    for (std::uint32_t end : schedule_.round_ends) {
      ++round_;
      if (Failure failure = check_round(begin, end); !failure.empty()) return failure;
      begin = end;
    }
    return check_output();
  }

 private:
  using Sets = std::array<IntervalSet, 3>;  // by Buffer

  static int index(const Operand& operand) { return static_cast<int>(operand.at.buffer); }
  std::int64_t payload(const Operand& operand) const { return payload_bytes(shape_, operand); }

  Failure check_rounds() const {
    std::uint32_t before = 0;
    for (std::uint32_t end : schedule_.round_ends) {
      if (end <= before) return "an empty round, or rounds out of order";
      before = end;
    }
    return before == schedule_.steps.size() ? "" : "the rounds do not cover the steps";
  }

  const UserBuffer& user_buffer(const Operand& operand) const {
    return operand.at.buffer == Buffer::send ? send_ : recv_;
  }

  Interval region(const Operand& operand) const {
    if (payload(operand) == 0) return {};
    if (operand.at.buffer != Buffer::temp) return user_buffer(operand).find(operand).region;
    const std::int64_t length = operand.count * layout_of(shape_, operand.unit).extent;
    return {operand.at.offset + std::min<std::int64_t>(0, length),
            operand.at.offset + std::max<std::int64_t>(0, length)};
  }

  Failure check_bounds(const Operand& operand) const {
    if (operand.count < 0) return "a negative count";
    if (payload(operand) == 0) return "";
    if (operand.at.buffer != Buffer::temp) return user_buffer(operand).find(operand).failure;
    const Range range = touched_bytes(shape_, operand);
    const bool inside = range.begin >= 0 && range.end <= schedule_.temp_bytes;
    return inside ? "" : "an operand outside the temp buffer";
  }

  Failure check_step(const Step& step) const {
    if (is_library(step)) return "a step that is the whole collective has company";
    if (Failure failure = check_bounds(step.first); !failure.empty()) return failure;
    if (is_posted(step)) {
      const bool valid = step.peer >= 0 && step.peer < shape_.size && step.peer != shape_.rank;
      if (!valid) return "a message to or from no other rank of the call";
      if (step.kind == StepKind::recv && step.first.at.buffer == Buffer::send)
        return "a receive into the send buffer";
      return "";
    }
    if (Failure failure = check_bounds(step.second); !failure.empty()) return failure;
    if (payload(step.first) != payload(step.second)) return "operands of different sizes";
    if (step.second.at.buffer == Buffer::send) return "a write to the send buffer";
    if (same_region(step)) return "operands that overlap";
    return "";
  }

  bool same_region(const Step& step) const {
    if (step.first.at.buffer != step.second.at.buffer) return false;
    const Interval a = region(step.first), b = region(step.second);
    return !a.empty() && !b.empty() && a.begin < b.end && b.begin < a.end;
  }

  // Nothing may write what a posted step uses, whatever the order of the steps in the round.
  Failure check_conflicts(std::uint32_t begin, std::uint32_t end) const {
    Sets sent, received;
    for (std::uint32_t i = begin; i < end; ++i) {
      const Step& step = schedule_.steps[i];
      if (!is_posted(step)) continue;
      const int buffer = index(step.first);
      const Interval at = region(step.first);
      if (received[buffer].intersects(at)) return "two messages that overlap";
      if (step.kind == StepKind::recv && sent[buffer].intersects(at))
        return "two messages that overlap";
      (step.kind == StepKind::recv ? received : sent)[buffer].add(at);
    }
    for (std::uint32_t i = begin; i < end; ++i) {
      const Step& step = schedule_.steps[i];
      if (is_posted(step)) continue;
      if (received[index(step.first)].intersects(region(step.first)))
        return "a local step that reads what is being received";
      const int to = index(step.second);
      if (received[to].intersects(region(step.second)))
        return "a local step that writes what is being received";
      if (sent[to].intersects(region(step.second)))
        return "a local step that writes what is being sent";
    }
    return "";
  }

  Failure read(const Operand& operand) const {
    if (operand.at.buffer == Buffer::send || written_[index(operand)].contains(region(operand)))
      return "";
    return "a read of what nothing has written yet";
  }

  Failure write(const Operand& operand) {
    const bool output = operand.at.buffer == Buffer::recv;
    if (output && moves_data_only(shape_.kind) && output_.intersects(region(operand)))
      return "a second write to the same output";
    if (output && kept_.intersects(region(operand))) return "a write to what must stay as it is";
    written_[index(operand)].add(region(operand));
    if (output) output_.add(region(operand));
    return "";
  }

  Failure check_flow(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t i = begin; i < end; ++i) {
      const Step& step = schedule_.steps[i];
      if (step.kind == StepKind::recv) continue;
      if (Failure failure = read(step.first); !failure.empty()) return failure;
      if (step.kind == StepKind::send) continue;
      if (step.kind == StepKind::reduce) {
        if (Failure failure = read(step.second); !failure.empty()) return failure;
      }
      if (Failure failure = write(step.second); !failure.empty()) return failure;
    }
    for (std::uint32_t i = begin; i < end; ++i) {
      if (schedule_.steps[i].kind != StepKind::recv) continue;
      if (Failure failure = write(schedule_.steps[i].first); !failure.empty()) return failure;
    }
    return "";
  }

  Failure check_round(std::uint32_t begin, std::uint32_t end) {
    Failure failure;
    for (std::uint32_t i = begin; i < end && failure.empty(); ++i)
      failure = check_step(schedule_.steps[i]);
    if (failure.empty()) failure = check_conflicts(begin, end);
    if (failure.empty()) failure = check_flow(begin, end);
    if (!failure.empty()) failure = "round " + std::to_string(round_) + ": " + failure;
    return failure;
  }

  Interval whole() const { return {0, recv_.bytes()}; }
  Interval own_block() const { return region(incoming(shape_, shape_.rank)); }

  bool is_exscan_of_nothing() const { return shape_.kind == Kind::exscan && shape_.rank == 0; }

  // The part of the receive buffer that is the result; a reduce_scatter in place has more there.
  Interval output() const {
    if (is_exscan_of_nothing()) return {};
    return reduces(shape_.kind) && recv_.bytes() > 0 ? own_block() : whole();
  }

  // What the receive buffer holds before the first step.
  Interval input_in_output() const {
    if (shape_.kind == Kind::bcast) return shape_.rank == shape_.root ? whole() : Interval{};
    if (!shape_.in_place) return {};
    switch (shape_.kind) {
      case Kind::gather:
      case Kind::gatherv:
      case Kind::allgather:
      case Kind::allgatherv:
        return own_block();
      default:
        return whole();
    }
  }

  // What is right before the first step and needs no write.
  Interval finished_beforehand() const {
    if (shape_.kind == Kind::bcast) return input_in_output();
    if (!shape_.in_place) return {};
    const bool alone = shape_.size == 1 || (shape_.kind == Kind::scan && shape_.rank == 0);
    if (reduces(shape_.kind)) return alone ? output() : Interval{};
    return recv_.bytes() > 0 ? own_block() : Interval{};
  }

  void mark_what_is_there() {
    written_[static_cast<int>(Buffer::recv)].add(input_in_output());
    if (reduces(shape_.kind))
      kept_.add({output().end, recv_.bytes()});
    else
      kept_.add(finished_beforehand());
  }

  Failure check_output() {
    output_.add(finished_beforehand());
    const Interval all = output();
    return output_.contains(all) ? "" : "an output that nothing writes";
  }

  const Schedule& schedule_;
  const Shape& shape_;
  UserBuffer send_;
  UserBuffer recv_;
  std::uint32_t round_ = 0;
  IntervalSet kept_;    // of the receive buffer: no step may write it
  Sets written_;        // by a step, or input
  IntervalSet output_;  // of the receive buffer, by a step
};

}  // namespace

Result<bool> verify_local(const Schedule& schedule) {
  const Failure failure = LocalVerifier(schedule).verify();
  if (failure.empty()) return true;
  return Error{std::string(kind_name(schedule.shape.kind)) + " " + schedule.algorithm + ", rank " +
               std::to_string(schedule.shape.rank) + " of " + std::to_string(schedule.shape.size) +
               ": " + failure};
}

}  // namespace weft
