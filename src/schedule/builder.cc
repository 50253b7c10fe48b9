// Implements Builder, which turns the steps of an algorithm into a schedule: it appends them, lays
// out the temporary buffer, and collects the properties that executors need.
#include "schedule/builder.h"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

constexpr std::int64_t kAlignment_bytes = 64;

std::int64_t align(std::int64_t bytes, std::int64_t alignment = kAlignment_bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Returns a hash (FNV-1a) of those facts about the call that are equal on all ranks.
std::uint32_t fingerprint(const Schedule& schedule) {
  const Shape& s = schedule.shape;
  const Tuning& tuning = schedule.tuning;
  std::uint64_t hash = 14695981039346656037u;
  const auto add = [&](std::uint64_t word) { hash = (hash ^ word) * 1099511628211u; };
  add(static_cast<std::uint64_t>(s.kind));
  add(static_cast<std::uint64_t>(s.root));
  add(static_cast<std::uint64_t>(agreed_bytes(s).value_or(0)));
  add(static_cast<std::uint64_t>(tuning.chunk_bytes));
  add(static_cast<std::uint64_t>(tuning.radix));
  add(static_cast<std::uint64_t>(tuning.radix_across));
  for (const char* c = schedule.algorithm; *c; ++c) add(static_cast<unsigned char>(*c));
  return static_cast<std::uint32_t>(hash >> (64 - kFingerprintBits)) | 1u;
}

}  // namespace

Builder::Builder(Shape shape, const char* algorithm, const Tuning& tuning) {
  schedule_.shape = std::move(shape);
  schedule_.algorithm = algorithm;
  schedule_.tuning = tuning;
}

void Builder::only_iterations(std::int32_t done, std::int32_t iterations) {
  batch_begin_ = done;
  batch_end_ = done + iterations;
  has_waited_ = done > 0;
}

bool Builder::is_in_batch() {
  if (iteration_ >= batch_end_) leaves_more_ = true;
  return iteration_ >= batch_begin_ && iteration_ < batch_end_;
}

Builder::Iterations Builder::iterations(int begin, int end) {
  const int all = std::max(0, end - begin);
  const int before = std::clamp(batch_begin_ - iteration_, 0, all);
  iteration_ += before;
  const int taken = std::clamp(batch_end_ - iteration_, 0, all - before);
  const int left_out = all - before - taken;
  if (left_out > 0) leaves_more_ = true;
  if (taken == 0) iteration_ += left_out;
  return {*this, begin + before, begin + before + taken, left_out};
}

Location Builder::temp(std::int64_t count, Unit unit) {
  const Range range = touched_bytes(shape(), {{Buffer::temp, 0}, count, unit});
  const std::int64_t before = std::max<std::int64_t>(0, -range.begin);
  const Location origin{Buffer::temp, align(schedule_.temp_bytes + before)};
  schedule_.temp_bytes = align(origin.offset + std::max<std::int64_t>(0, range.end));
  return origin;
}

void Builder::use_slots() {
  if (schedule_.node_bytes == 0) schedule_.node_bytes = ranks_here(shape()) * kSlotBytes;
}

Location Builder::node(std::int64_t bytes, std::int64_t alignment) {
  use_slots();
  const Location origin{Buffer::node, align(schedule_.node_bytes, alignment)};
  schedule_.node_bytes = align(origin.offset + bytes);
  return origin;
}

void Builder::halve(Location at, std::int64_t stride, bool change) {
  schedule_.halves = {at.offset, stride, change};
}

Location Builder::slot(int node_rank) {
  use_slots();
  return {Buffer::node, node_rank * kSlotBytes + kSlotHeaderBytes};
}

std::int64_t Builder::extent(Unit unit) const {
  return layout(unit).extent;
}

void Builder::message(StepKind kind, int peer, const Operand& operand) {
  const bool empty = payload_bytes(shape(), operand) == 0;
  if (empty && shape().kind != Kind::barrier) return;
  if (!is_in_batch()) return;
  ++posted_;
  const bool sends = kind == StepKind::send;
  if (has_waited_)
    (sends ? schedule_.sends_after_first_round : schedule_.receives_after_first_round) = true;
  append({.kind = kind, .peer = peer, .first = operand});
}

void Builder::send(int peer, Location from, std::int64_t count, Unit unit) {
  message(StepKind::send, peer, {from, count, unit});
}

void Builder::recv(int peer, Location to, std::int64_t count, Unit unit) {
  message(StepKind::recv, peer, {to, count, unit});
}

// Adds a collective of the MPI library between the leaders of the nodes. Other nodes may wait for
// this rank's call, so the schedule counts as one that sends after its first round.
void Builder::leaders(Kind collective, int root, const Operand& gives, const Operand& gets) {
  ++posted_;
  ++schedule_.leader_calls;
  schedule_.sends_after_first_round = true;
  append({.kind = StepKind::leaders,
          .peer = root,
          .first = gives,
          .second = gets,
          .collective = collective});
}

void Builder::reduce(Location lower, Location higher, Location into, std::int64_t count) {
  if (count == 0) return;
  append({.kind = StepKind::reduce,
          .first = {lower, count, Unit::recv},
          .second = {higher, count, Unit::recv},
          .into = into});
}

void Builder::copy(const Operand& from, const Operand& to) {
  if (payload_bytes(shape(), from) == 0 || from.at == to.at) return;
  append({.kind = StepKind::copy, .first = from, .second = to});
}

void Builder::copy(Location from, Location to, std::int64_t count, Unit unit) {
  copy({from, count, unit}, {to, count, unit});
}

// Adds a step that raises this rank's counter in shared memory. If an earlier round waits, other
// ranks may wait for this rank's progress, so the schedule counts as one that sends after its first
// round.
std::uint32_t Builder::signal() {
  use_slots();
  if (has_waited_) schedule_.sends_after_first_round = true;
  append({.kind = StepKind::signal, .value = ++signals_});
  return signals_;
}

void Builder::wait(int peer, std::uint32_t value) {
  use_slots();
  has_waited_ = true;
  waited_for_.resize(static_cast<std::size_t>(shape().size));
  std::uint32_t& before = waited_for_[static_cast<std::size_t>(peer)];
  if (value <= before) return;
  before = value;
  append({.kind = StepKind::wait, .peer = peer, .value = value});
}

void Builder::tell(Location word, std::uint32_t number) {
  append({.kind = StepKind::tell, .first = {word, kWordBytes, Unit::byte}, .value = number});
}

void Builder::check(int peer, Location word, std::uint32_t number) {
  append({.kind = StepKind::check,
          .peer = peer,
          .first = {word, kWordBytes, Unit::byte},
          .value = number});
}

void Builder::meet(Shows shows) {
  const Shape& s = shape();
  use_slots();
  schedule_.is_direct = true;
  schedule_.shows_input = shows == Shows::input || shows == Shows::both;
  schedule_.shows_result = shows == Shows::result || shows == Shows::both;
  append({.kind = StepKind::show});
  signal();
  for (int i = 0; i < s.size; ++i) find((s.rank + i) % s.size);
  append({.kind = StepKind::agree});
  synchronizes();
}

void Builder::find(int rank) {
  if (rank != shape().rank) wait(rank, 1);
  append({.kind = StepKind::find, .peer = rank});
}

Location Builder::input_of(int rank) const {
  return rank == shape().rank ? input() : Location{Buffer::send, 0, rank};
}

Location Builder::result_of(int rank) const {
  return {Buffer::recv, 0, rank == shape().rank ? Location::kOwn : rank};
}

void Builder::library(StepKind kind) {
  append({.kind = kind});
  // The rounds inside the MPI library are not known, so a late send is assumed.
  schedule_.sends_after_first_round = true;
}

void Builder::end_round() {
  const auto end = static_cast<std::uint32_t>(schedule_.steps.size());
  const std::uint32_t begin = schedule_.round_ends.empty() ? 0 : schedule_.round_ends.back();
  if (end == begin) return;
  schedule_.round_ends.push_back(end);
  schedule_.most_posted = std::max(schedule_.most_posted, posted_);
  has_waited_ = has_waited_ || posted_ > 0;
  posted_ = 0;
}

void Builder::caller_begins() {
  end_round();
  schedule_.rounds_at_start = schedule_.rounds();
}

void Builder::caller_continues() {
  end_round();
  schedule_.left_from_round = schedule_.rounds();
}

Schedule Builder::finish() {
  constexpr std::int64_t kLong_bytes = 256 * 1024;
  end_round();
  if (schedule_.left_from_round == schedule_.rounds()) schedule_.left_from_round = Schedule::kNever;
  schedule_.is_long = agreed_bytes(shape()).value_or(0) > kLong_bytes;
  schedule_.is_short = schedule_.node_bytes == ranks_here(shape()) * kSlotBytes;
  schedule_.fingerprint = fingerprint(schedule_);
  schedule_.program = compile(schedule_);
  return std::move(schedule_);
}

void Builder::append(const Step& step) {
  if (!is_in_batch()) return;
  schedule_.steps.push_back(step);
  if (!is_local(step.kind)) return;
  Step& local = schedule_.steps.back();
  local.plain = layout(step.first.unit).plain && layout(step.second.unit).plain;
  local.bytes = payload_bytes(shape(), step.first);
  if (!copies_result_of_last(local)) return;
  local.fused = Fused::with_before;
  schedule_.steps[schedule_.steps.size() - 2].fused = Fused::with_next;
}

// Returns whether the step `copy` copies the result of the step before it, a reduction, and the two
// can run in one pass. The copy's target must not overlap the reduction's operands, or must
// coincide with them element by element.
bool Builder::copies_result_of_last(const Step& copy) const {
  const std::size_t begin = schedule_.round_ends.empty() ? 0 : schedule_.round_ends.back();
  if (copy.kind != StepKind::copy || schedule_.steps.size() < begin + 2) return false;
  const Step& last = schedule_.steps[schedule_.steps.size() - 2];
  if (last.kind != StepKind::reduce || !last.plain || !copy.plain) return false;
  const Location& to = copy.second.at;
  if (weft::result_of(last) != copy.first || to.buffer != Buffer::recv) return false;
  const auto apart = [&](const Location& operand) {
    if (operand.rank != to.rank) return true;
    // If the call is in place, another rank's input is its result buffer, and both begin at the
    // same address. Equal offsets then mean equal elements, each of which is read before it is
    // overwritten.
    return to.is_own() ? operand == to || operand.buffer != to.buffer : operand.offset == to.offset;
  };
  return apart(last.first.at) && apart(last.second.at) && apart(last.into);
}

}  // namespace weft
