// Operands: the addresses of a schedule's buffers in one operation. It also carries out the steps
// that need only memory: copies and reductions of contiguous data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "schedule/schedule.h"
#include "shm/copy.h"
#include "shm/node_buffers.h"
#include "shm/reduction.h"
#include "transport/peer_buffers.h"

namespace weft {

struct Operands {
  std::array<std::byte*, kBuffers> base{};  // address of each buffer, indexed by Buffer
  // Reduction kernel; nullptr if only the transport can reduce.
  Kernel reduce = nullptr;
  // Other ranks' buffers; nullptr if the operation does not use them in place.
  PeerBuffers* peers = nullptr;

  // Sets the addresses of the buffers in the node's shared memory, for this use of it.
  void use(const NodeBufferUse& turn, const Schedule& schedule) {
    std::byte* const node = turn.memory();
    base[static_cast<std::size_t>(Buffer::node)] = node;
    const Halves& halves = schedule.halves;
    if (halves.stride == 0) return;
    const bool changed = halves.change && turn.is_odd();
    std::byte* const first = node + halves.offset;
    base[static_cast<std::size_t>(Buffer::half_a)] = first + (changed ? halves.stride : 0);
    base[static_cast<std::size_t>(Buffer::half_b)] = first + (changed ? 0 : halves.stride);
  }

  std::byte* address(const Location& at) const {
    return at.is_own() ? own(at.buffer, at.offset)
                       : moved(peers->at(at.rank, at.buffer), at.offset);
  }

  // Carries out a copy or reduction of a compiled schedule on this rank's own buffers.
  void carry_out(const Instruction& one) const {
    const std::byte* first = own(one.first, one.first_at);
    std::byte* second = own(one.second, one.second_at);
    if (one.kind == Instruction::Kind::copy)
      copy_bytes(second, first, one.amount, reader_of(one.second));
    else
      reduce(first, second, own(one.into, one.into_at),
             one.has_also ? own(one.also, one.also_at) : nullptr, one.amount);
  }

  // Carries out a copy or reduction on contiguous data. Returns false if the transport must do it.
  bool carry_out(const Step& step) const {
    if (step.fused == Fused::with_before && reduce) return true;
    if (peers && peers->needs_kernel() && copy_by_kernel(step)) return true;
    const std::byte* first = address(step.first.at);
    std::byte* second = address(step.second.at);
    if (step.kind == StepKind::copy)
      copy_bytes(second, first, step.bytes, reader_of(step.second.at.buffer));
    else if (reduce)
      reduce(first, second, address(step.into), also(step), step.first.count);
    else
      return false;
    return true;
  }

 private:
  static Reader reader_of(Buffer buffer) {
    return is_in_node(buffer) ? Reader::others : Reader::self;
  }
  // Returns the address `offset` bytes after `origin`. It adds integers and not pointers, since the
  // origin may be MPI_BOTTOM, and offsets may lead below it.
  static std::byte* moved(std::byte* origin, std::int64_t offset) {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(origin) + offset);
  }
  std::byte* own(Buffer buffer, std::int64_t offset) const {
    return moved(base[static_cast<std::size_t>(buffer)], offset);
  }

  // Copies from another process's buffer through the kernel, and returns true. Returns false if
  // this process can access the buffer directly.
  bool copy_by_kernel(const Step& step) const {
    const Location &from = step.first.at, &to = step.second.at;
    if (from.is_own() || !peers->is_copied(from.rank, from.buffer)) return false;
    peers->read(from.rank, from.buffer, from.offset, address(to), step.bytes);
    return true;
  }

  // Returns where a reduction must put a second copy of its result, which the next step would
  // otherwise copy there; nullptr if no such copy follows.
  std::byte* also(const Step& step) const {
    return step.fused == Fused::with_next ? address((&step)[1].second.at) : nullptr;
  }
};

}  // namespace weft
