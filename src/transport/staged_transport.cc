// Implements StagedTransport: finds out which step uses which piece first, and writes it last.
#include "transport/staged_transport.h"

#include <algorithm>
#include <limits>

namespace weft {
namespace {

// Calls visit(operand, whether the step writes it) for each operand that the step uses itself. A
// reduction that is fused with the next step writes that step's result, too.
template <class Visit>
void for_each_operand(const Step& step, Visit visit) {
  const bool receives = step.kind == StepKind::recv;
  visit(step.first, receives);
  visit(step.second, step.kind == StepKind::copy || step.kind == StepKind::leaders);
  if (step.kind == StepKind::reduce) visit(result_of(step), true);
  if (step.fused == Fused::with_next) visit((&step)[1].second, true);
}

}  // namespace

StagedTransport::StagedTransport(Transport& others, const Operands* operands,
                                 const Schedule& schedule, const std::vector<StagedBuffer>& staged)
    : others_(others),
      operands_(operands),
      schedule_(schedule),
      staged_(staged.begin(), staged.end()) {
  for (std::size_t number = 0; number < staged_.size(); ++number) plan(number);
  std::stable_sort(
      arriving_.begin(), arriving_.end(),
      [](const Arriving& one, const Arriving& other) { return one.before < other.before; });
  std::vector<int> places(staged_.size());
  for (const Arriving& one : arriving_)
    staged_[one.buffer].place[static_cast<std::size_t>(one.piece)] = places[one.buffer]++;
  const auto& steps = schedule.steps;
  for (std::size_t i = 0; i < steps.size() && !schedule.next_batch; ++i)
    if (!is_node(steps[i].kind)) last_step_ = static_cast<int>(i);
}

// Returns the pieces of the buffer that contain these bytes.
StagedTransport::Pieces StagedTransport::pieces_of(const StagedBuffer& staged, const Range& bytes) {
  const std::int64_t begin = std::max(bytes.begin, staged.bytes.begin) - staged.bytes.begin;
  const std::int64_t end = std::min(bytes.end, staged.bytes.end) - staged.bytes.begin;
  if (begin >= end) return {0, 0};
  return {static_cast<int>(begin / staged.piece_bytes),
          static_cast<int>((end - 1) / staged.piece_bytes) + 1};
}

// Decides when the pieces of a buffer arrive and leave. If the schedule continues in other batches,
// these may use any piece: all of them arrive, and leave at the end.
void StagedTransport::plan(std::size_t number) {
  Staged& staged = staged_[number];
  const int never = std::numeric_limits<int>::max();
  const auto pieces = static_cast<std::size_t>(staged.pieces());
  std::vector<int> first(pieces, never), last(pieces, kNever);
  for (std::size_t i = 0; i < schedule_.steps.size(); ++i) {
    const int index = static_cast<int>(i);
    for_each_operand(schedule_.steps[i], [&](const Operand& operand, bool is_written) {
      if (operand.at.buffer != staged.buffer) return;
      const Pieces used = pieces_of(staged, touched_bytes(schedule_.shape, operand));
      for (int piece = used.first; piece < used.end; ++piece) {
        const auto at = static_cast<std::size_t>(piece);
        first[at] = std::min(first[at], index);
        if (is_written) last[at] = index;
      }
    });
  }
  staged.place.assign(pieces, kNever);
  const bool is_whole = !schedule_.next_batch;
  for (std::size_t at = 0; at < pieces; ++at) {
    const int piece = static_cast<int>(at);
    if (staged.is_read && (first[at] != never || !is_whole))
      arriving_.push_back({number, piece, first[at]});
    if (staged.is_written && is_whole && last[at] != kNever)
      staged.leaving.push_back({piece, last[at]});
  }
  std::stable_sort(
      staged.leaving.begin(), staged.leaving.end(),
      [](const Leaving& one, const Leaving& other) { return one.after < other.after; });
}

void StagedTransport::begin() {
  started_ = kNever;
  for (Staged& staged : staged_) {
    staged.left = 0;
    staged.arrived = 0;
  }
  for (const Arriving& one : arriving_) staged_[one.buffer].mover->bring_in(one.piece);
}

void StagedTransport::wait_for_input() {
  for (const Staged& staged : staged_) staged.mover->wait();
}

void StagedTransport::end(bool has_succeeded) {
  for (const Staged& staged : staged_) {
    const bool is_all_here = has_succeeded && staged.is_written && schedule_.next_batch;
    for (int piece = 0; is_all_here && piece < staged.pieces(); ++piece)
      staged.mover->take_out(piece);
    staged.mover->wait();
  }
}

// Returns whether the pieces that contain the operand have arrived, as far as they come at all.
bool StagedTransport::has_arrived(const Operand& operand) {
  for (Staged& staged : staged_) {
    if (!staged.is_read || operand.at.buffer != staged.buffer) continue;
    const Pieces used = pieces_of(staged, touched_bytes(schedule_.shape, operand));
    int needed = 0;
    for (int piece = used.first; piece < used.end; ++piece)
      needed = std::max(needed, staged.place[static_cast<std::size_t>(piece)] + 1);
    if (needed <= staged.arrived) continue;
    staged.arrived = staged.mover->brought_in();
    if (needed > staged.arrived) return false;
  }
  return true;
}

bool StagedTransport::may_start(const Step& step) {
  bool all_here = true;
  for_each_operand(
      step, [&](const Operand& operand, bool) { all_here = all_here && has_arrived(operand); });
  return all_here;
}

Result<bool> StagedTransport::start(const Step& step) {
  if (!may_start(step)) return false;
  if (!step.plain || !operands_ || !operands_->carry_out(step)) {
    auto started = others_.start(step);
    if (!started || !*started) return started;
  }
  // The steps of later batches do not lie in this schedule, and their indices are not needed.
  if (!schedule_.next_batch) started_ = static_cast<int>(&step - schedule_.steps.data());
  return true;
}

Result<bool> StagedTransport::test() {
  auto tested = others_.test();
  if (!tested || !*tested) return tested;
  send_off_output();
  return started_ == kNever || started_ != last_step_ || has_output_arrived();
}

// Sends off the pieces that no later step writes. All steps that were started are over.
void StagedTransport::send_off_output() {
  for (Staged& staged : staged_)
    for (; staged.left < staged.leaving.size(); ++staged.left) {
      const Leaving& next = staged.leaving[staged.left];
      if (next.after > started_) break;
      staged.mover->take_out(next.piece);
    }
}

bool StagedTransport::has_output_arrived() {
  for (Staged& staged : staged_)
    if (staged.mover->taken_out() < static_cast<int>(staged.left)) return false;
  return true;
}

}  // namespace weft
