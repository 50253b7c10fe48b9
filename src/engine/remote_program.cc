// Implements RemoteProgram. It carries out instructions as SharedMemoryCall does, except that some
// buffers lie in another process.
#include "engine/remote_program.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "shm/copy.h"

namespace weft {
namespace {

RemoteProgram::State state_of(OtherProcess::Moved moved) {
  if (moved == OtherProcess::Moved::all) return RemoteProgram::State::over;
  return moved == OtherProcess::Moved::ended ? RemoteProgram::State::ended
                                             : RemoteProgram::State::unable;
}

}  // namespace

bool RemoteProgram::begin(const Work& work, pid_t process) {
  end();
  segment_ = known_segments().find(work.memory.token);
  if (!segment_) return false;
  std::byte* const memory = segment_->data() + work.memory.offset;
  node_buffers_.emplace(memory, work.node_rank, work.ranks, work.buffer_bytes);
  turn_ = work.turn.in(*node_buffers_);
  is_own_ = process == getpid();
  process_.emplace(process);
  base_ = work.base;
  program_ = work.program;
  instructions_ = work.instructions;
  signals_before_ = work.signals_before;
  synchronizing_ = work.synchronizing;
  kernel_ = work.kernel ? find_kernel(work.kernel->element, work.kernel->op) : nullptr;
  element_bytes_ = work.kernel ? bytes_of(work.kernel->element) : 0;
  computes_as_ = work.computes_as;
  fetched_count_ = 0;
  return true;
}

void RemoteProgram::end() {
  node_buffers_.reset();
  segment_.reset();
}

RemoteProgram::State RemoteProgram::progress(const std::atomic<std::uint32_t>& wanted, Work* work) {
  if (!work->begun && !turn_.may_begin()) return State::blocked;
  work->begun = true;
  for (;; ++work->next) {
    if (wanted.load(std::memory_order_relaxed) != 0) return State::blocked;
    const Instruction* const one = instruction(work->next);
    if (!one) return failed_;
    if (one->kind == Instruction::Kind::signal) {
      turn_.signal(signals_before_ + one->value);
    } else if (one->kind == Instruction::Kind::wait) {
      const auto seen = turn_.look_for(one->node_rank, signals_before_ + one->value, 1);
      // The ranks have called different collectives. Only the rank itself can report that, so it
      // gets the operation back.
      if (seen != NodeBufferUse::Seen::yes)
        return seen == NodeBufferUse::Seen::no ? State::blocked : State::unable;
    } else if (one->kind == Instruction::Kind::end) {
      turn_.end(synchronizing_);
      return State::over;
    } else if (one->kind == Instruction::Kind::tell) {
      turn_.tell(one->first_at, one->value);
    } else if (one->kind == Instruction::Kind::check) {
      if (!turn_.is_told(one->first_at, one->value)) return State::unable;
    } else if (const State done = carry_out(*one); done != State::over) {
      return done;
    }
  }
}

const Instruction* RemoteProgram::instruction(std::uint32_t index) {
  if (index - fetched_from_ >= fetched_count_) {
    const std::uint32_t count = std::min(kFetched, instructions_ - index);
    const auto moved = process_->read(reinterpret_cast<std::byte*>(fetched_.data()),
                                      program_ + index * sizeof(Instruction),
                                      static_cast<std::int64_t>(count * sizeof(Instruction)));
    failed_ = state_of(moved);
    fetched_from_ = index;
    fetched_count_ = moved == OtherProcess::Moved::all ? count : 0;
    if (fetched_count_ == 0) return nullptr;
  }
  return &fetched_[index - fetched_from_];
}

RemoteProgram::Place RemoteProgram::place(Buffer buffer, std::int64_t offset) const {
  const std::uintptr_t at =
      base_[static_cast<std::size_t>(buffer)] + static_cast<std::uintptr_t>(offset);
  if (is_in_node(buffer)) return {node_buffers_->memory() + at, 0};
  return is_own_ ? Place{reinterpret_cast<std::byte*>(at), 0} : Place{nullptr, at};
}

RemoteProgram::State RemoteProgram::carry_out(const Instruction& one) {
  if (one.kind == Instruction::Kind::reduce) return reduce(one);
  return copy(place(one.first, one.first_at), place(one.second, one.second_at), one.amount);
}

RemoteProgram::State RemoteProgram::copy(const Place& from, const Place& to, std::int64_t bytes) {
  if (from.here) return put(from.here, to, bytes);
  if (to.here) return state_of(process_->read(to.here, from.there, bytes));
  constexpr std::int64_t kPart_bytes = 256 * 1024;  // bytes that fit into a core's cache
  for (std::int64_t done = 0; done < bytes; done += kPart_bytes) {
    const std::int64_t part = std::min(kPart_bytes, bytes - done);
    const auto offset = static_cast<std::uintptr_t>(done);
    const std::byte* const got = get({nullptr, from.there + offset}, first_, part);
    const State state = got ? put(got, {nullptr, to.there + offset}, part) : failed_;
    if (state != State::over) return state;
  }
  return State::over;
}

RemoteProgram::State RemoteProgram::put(const std::byte* from, const Place& to,
                                        std::int64_t bytes) const {
  if (!to.here) return state_of(process_->write(from, to.there, bytes));
  copy_bytes(to.here, from, bytes);
  return State::over;
}

const std::byte* RemoteProgram::get(const Place& from, std::vector<std::byte>& room,
                                    std::int64_t bytes) {
  if (from.here) return from.here;
  if (room.size() < static_cast<std::size_t>(bytes)) room.resize(static_cast<std::size_t>(bytes));
  failed_ = state_of(process_->read(room.data(), from.there, bytes));
  return failed_ == State::over ? room.data() : nullptr;
}

// Carries out a reduction. If it cannot write the whole result into the rank's memory, the rank
// itself must repeat the step. Therefore accesses that may fail come first, and operands that were
// overwritten are restored.
RemoteProgram::State RemoteProgram::reduce(const Instruction& one) {
  const std::int64_t bytes = one.amount * element_bytes_;
  const Place first = place(one.first, one.first_at), second = place(one.second, one.second_at);
  const std::byte* const lower = get(first, first_, bytes);
  const std::byte* const higher = lower ? get(second, second_, bytes) : nullptr;
  if (!higher) return failed_;
  const Place into = place(one.into, one.into_at);
  const Place also = one.has_also ? place(one.also, one.also_at) : Place{};
  const ComputesAs as_its_rank(computes_as_);
  if (into.here && (!one.has_also || also.here)) {
    kernel_(lower, higher, into.here, also.here, one.amount);
    return State::over;
  }
  if (result_.size() < static_cast<std::size_t>(bytes))
    result_.resize(static_cast<std::size_t>(bytes));
  kernel_(lower, higher, result_.data(), nullptr, one.amount);
  for (const Place& target : {into, also}) {
    if (target.here || target.there == 0) continue;
    const State done = put(result_.data(), target, bytes);
    if (done == State::over) continue;
    for (const Place& touched : {into, also}) {
      if (touched.here || touched.there == 0) continue;
      if (touched.there == first.there) put(lower, touched, bytes);
      if (touched.there == second.there) put(higher, touched, bytes);
    }
    return done;
  }
  for (const Place& target : {into, also})
    if (target.here) copy_bytes(target.here, result_.data(), bytes);
  return State::over;
}

}  // namespace weft
