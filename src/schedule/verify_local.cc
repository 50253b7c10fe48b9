// Checks one rank's schedule by itself, round by round. Places in the temporary buffer are counted
// in bytes; places in the user's buffers are counted in bytes of data, without gaps (UserBuffer).
#include <algorithm>
#include <array>

#include "schedule/interval_set.h"
#include "schedule/user_buffer.h"
#include "schedule/verify.h"

namespace weft {
namespace {

using Failure = std::string;  // error message; empty if nothing is wrong

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
    if (schedule_.node_bytes > most_node_bytes(ranks_here(shape_)))
      return "more of the node's memory than there is";
    if (schedule_.node_bytes > 0 && ranks_here(shape_) == 1)
      return "memory of a node where this rank is alone";
    if (!schedule_.steps.empty() && is_library(schedule_.steps[0].kind))
      return schedule_.steps.size() == 1 ? "" : "a step that is the whole collective has company";
    if (schedule_.exchanges_once && !is_one_exchange()) return "it does not exchange once only";
    mark_what_is_there();
    std::uint32_t begin = 0;
    for (std::uint32_t end : schedule_.round_ends) {
      ++round_;
      if (Failure failure = check_round(begin, end); !failure.empty()) return failure;
      begin = end;
    }
    if (schedule_.is_direct && !agrees_) return "ranks that would not know alike whether to go on";
    return check_output();
  }

 private:
  using Sets = std::array<IntervalSet, kBuffers>;  // indexed by Buffer

  static int index(const Operand& operand) { return static_cast<int>(operand.at.buffer); }
  static bool is_users(const Operand& operand) {
    return operand.at.buffer == Buffer::send || operand.at.buffer == Buffer::recv;
  }
  static bool is_peers(const Operand& operand) { return !operand.at.is_own(); }
  std::int64_t payload(const Operand& operand) const { return payload_bytes(shape_, operand); }

  bool is_one_exchange() const {
    bool may_signal = true;
    for (const Step& step : schedule_.steps) {
      if (is_posted(step.kind) || (step.kind == StepKind::signal && !may_signal)) return false;
      may_signal = may_signal && !is_node(step.kind);
    }
    return true;
  }

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
    if (is_users(operand) && !is_peers(operand)) return user_buffer(operand).find(operand).region;
    const std::int64_t length = operand.count * layout_of(shape_, operand.unit).extent;
    return {operand.at.offset + std::min<std::int64_t>(0, length),
            operand.at.offset + std::max<std::int64_t>(0, length)};
  }

  Failure check_bounds(const Operand& operand) const {
    if (operand.count < 0) return "a negative count";
    if (payload(operand) == 0) return "";
    if (is_peers(operand)) return check_peer(operand);
    if (is_users(operand)) return user_buffer(operand).find(operand).failure;
    if (is_in_node(operand.at.buffer)) return check_node_bounds(operand);
    const Range range = touched_bytes(shape_, operand);
    const bool inside = range.begin >= 0 && range.end <= schedule_.temp_bytes;
    return inside ? "" : "an operand outside the temp buffer";
  }

  // Returns what is wrong with an operand in another rank's buffer, as an error message or an empty
  // string. The size of that buffer is known only from all schedules together, so verify() checks
  // it.
  Failure check_peer(const Operand& operand) const {
    if (!agrees_) return "a buffer of another rank before all have agreed";
    if (!is_users(operand)) return "another rank's temp";
    return layout_of(shape_, operand.unit).plain ? "" : "another rank's buffer, and not plain";
  }

  Failure check_node_bounds(const Operand& operand) const {
    const Location at = in_node(schedule_, operand.at);
    const Range range = touched_bytes(shape_, {at, operand.count, operand.unit});
    const std::int64_t half_end = schedule_.halves.offset + schedule_.halves.stride;
    if (operand.at.buffer == Buffer::half_a && range.end > half_end)
      return "an operand across halves of the node's memory";
    if (range.begin < 0 || range.end > schedule_.node_bytes)
      return "an operand outside the node's memory";
    const std::int64_t in_slot = range.begin % kSlotBytes;
    const std::int64_t room = in_slot < kSlotHeaderBytes ? 0 : kSlotBytes - in_slot;
    const bool in_slots = range.begin < ranks_here(shape_) * kSlotBytes;
    return in_slots && range.end - range.begin > room ? "an operand across a slot's counter" : "";
  }

  Failure check_node_step(const Step& step) {
    if (step.kind == StepKind::signal)
      return step.value == ++signals_ ? "" : "signals that do not count up";
    if (step.kind == StepKind::show)
      return shows_ || signals_ > 0 ? "more than one show, or too late" : (shows_ = true, "");
    if (step.kind == StepKind::agree) {
      agrees_ = true;
      return found_.contains({0, shape_.size}) ? "" : "agrees before it has found all ranks";
    }
    if (step.kind == StepKind::tell) return check_word(step);
    const bool valid = shares_memory_with(shape_, step.peer);
    // Over several nodes, the number may have come in a message.
    const bool may_tell = valid || (shape_.nodes && step.peer >= 0 && step.peer < shape_.size);
    if (step.kind == StepKind::check) return may_tell ? check_word(step) : "a check of no rank";
    if (step.kind == StepKind::find && valid) found_.add({step.peer, step.peer + 1});
    if (step.kind == StepKind::find) return valid ? "" : "no rank of this node to be found";
    return valid && step.value > 0 ? "" : "a wait for no rank of this node";
  }

  Failure check_word(const Step& step) const {
    const bool fits = step.first.at.buffer == Buffer::node && step.first.count == kWordBytes &&
                      step.first.at.offset % kWordBytes == 0;
    return fits ? check_bounds(step.first) : "a number that is no word of the node's memory";
  }

  Failure check_step(const Step& step) {
    if (is_node(step.kind)) return check_node_step(step);
    if (is_library(step.kind)) return "a step that is the whole collective has company";
    if (Failure failure = check_bounds(step.first); !failure.empty()) return failure;
    if (step.kind == StepKind::leaders) return check_leaders(step);
    if (is_posted(step.kind)) {
      if (is_peers(step.first)) return "a message from or to another rank's buffer";
      const bool valid = step.peer >= 0 && step.peer < shape_.size && step.peer != shape_.rank;
      if (!valid) return "a message to or from no other rank of the call";
      if (step.kind == StepKind::recv && step.first.at.buffer == Buffer::send)
        return "a receive into the send buffer";
      return "";
    }
    if (Failure failure = check_bounds(step.second); !failure.empty()) return failure;
    if (payload(step.first) != payload(step.second)) return "operands of different sizes";
    const Operand result = result_of(step);
    if (Failure failure = check_bounds(result); !failure.empty()) return failure;
    if (result.at.buffer == Buffer::send) return "a write to the send buffer";
    // The result of a reduction may lie in its second operand, and the result of a copy always
    // does.
    const bool to_second = result.at == step.second.at;
    const bool to_first = step.plain && result.at == step.first.at && !to_second;
    const bool apart = to_first || !overlap(step.first, result);
    return apart && (to_second || !overlap(step.second, result)) ? "" : "operands that overlap";
  }

  Failure check_leaders(const Step& step) const {
    if (!shape_.has_leaders) return "a collective of leaders where there are none";
    if (Failure failure = check_bounds(step.second); !failure.empty()) return failure;
    if (is_peers(step.first) || is_peers(step.second))
      return "a collective of leaders on another rank's buffer";
    if (step.second.count > 0 && step.second.at.buffer == Buffer::send)
      return "a write to the send buffer";
    const bool in_place = step.first.at == step.second.at;
    return !in_place && overlap(step.first, step.second) ? "operands that overlap" : "";
  }

  bool overlap(const Operand& one, const Operand& other) const {
    if (one.at.buffer != other.at.buffer || one.at.rank != other.at.rank) return false;
    const Interval a = region(one), b = region(other);
    return !a.empty() && !b.empty() && a.begin < b.end && b.begin < a.end;
  }

  // Checks that no step of the round writes data that a posted step uses. Posted steps (sends,
  // receives, calls of leaders) may read and write until the end of the round.
  Failure check_conflicts(std::uint32_t begin, std::uint32_t end) const {
    Sets sent, received;
    for (std::uint32_t i = begin; i < end; ++i) {
      const Step& step = schedule_.steps[i];
      if (!is_posted(step.kind)) continue;
      const Operand given = given_by(step), got = got_by(step);
      if (received[index(given)].intersects(region(given)) ||
          received[index(got)].intersects(region(got)) || sent[index(got)].intersects(region(got)))
        return "two messages that overlap";
      sent[index(given)].add(region(given));
      received[index(got)].add(region(got));
    }
    for (std::uint32_t i = begin; i < end; ++i) {
      const Step& step = schedule_.steps[i];
      if (!is_local(step.kind)) continue;
      for (const Operand& read : reads(step))
        if (!is_peers(read) && received[index(read)].intersects(region(read)))
          return "a local step that reads what is being received";
      const Operand result = result_of(step);
      if (is_peers(result)) continue;
      const int to = index(result);
      if (received[to].intersects(region(result)))
        return "a local step that writes what is being received";
      if (sent[to].intersects(region(result))) return "a local step that writes what is being sent";
    }
    return "";
  }

  static std::vector<Operand> reads(const Step& step) {
    if (is_posted(step.kind)) return {given_by(step)};
    if (step.kind == StepKind::reduce) return {step.first, step.second};
    return {step.first};
  }

  // Checks that the data which a step reads have been written before. It leaves out shared memory
  // and other ranks' buffers, which may hold data of other ranks; verify() checks those.
  Failure read(const Operand& operand) const {
    if (operand.at.buffer == Buffer::send || is_in_node(operand.at.buffer)) return "";
    if (is_peers(operand)) return "";
    if (written_[index(operand)].contains(region(operand))) return "";
    return "a read of what nothing has written yet";
  }

  Failure write(const Operand& operand) {
    if (is_peers(operand)) return "";
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
      if (is_node(step.kind)) continue;
      for (const Operand& operand : reads(step))
        if (Failure failure = read(operand); !failure.empty()) return failure;
      if (is_posted(step.kind)) continue;
      if (Failure failure = write(result_of(step)); !failure.empty()) return failure;
    }
    for (std::uint32_t i = begin; i < end; ++i) {
      if (!is_posted(schedule_.steps[i].kind)) continue;
      if (Failure failure = write(got_by(schedule_.steps[i])); !failure.empty()) return failure;
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

  // Returns the range of the receive buffer that must hold the result at the end. For an in-place
  // reduce_scatter the buffer is larger than that.
  Interval output() const {
    if (is_exscan_of_nothing()) return {};
    return reduces(shape_.kind) && recv_.bytes() > 0 ? own_block() : whole();
  }

  // Returns the part of the receive buffer that holds input before the first step.
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

  // Returns the part of the result that is in place before the first step, so that no step need
  // write it.
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
    // Other ranks write the result if shows_result is true. verify() checks that, from all
    // schedules together.
    if (schedule_.shows_result) return "";
    output_.add(finished_beforehand());
    const Interval all = output();
    return output_.contains(all) ? "" : "an output that nothing writes";
  }

  const Schedule& schedule_;
  const Shape& shape_;
  UserBuffer send_;
  UserBuffer recv_;
  std::uint32_t round_ = 0;
  std::uint32_t signals_ = 0;
  bool shows_ = false;
  bool agrees_ = false;
  IntervalSet found_;   // ranks whose buffers a step `find` has found
  IntervalSet kept_;    // range of the receive buffer that no step may write
  Sets written_;        // ranges of each buffer that hold input or that a step has written
  IntervalSet output_;  // range of the receive buffer that some step has written
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
