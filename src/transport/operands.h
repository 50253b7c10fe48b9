// Operands: where a schedule's buffers lie in one operation, and what may be done there without
// asking the transport.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "schedule/schedule.h"
#include "shm/reduction.h"
#include "transport/peer_buffers.h"

namespace weft {

struct Operands {
  std::array<std::byte*, kBuffers> base{};  // by Buffer
  Kernel reduce = nullptr;                  // nullptr: the transport reduces
  PeerBuffers* peers = nullptr;             // of a direct schedule

  std::byte* address(const Location& at) const {
    // By integers: the base may be MPI_BOTTOM, and offsets may lead below it.
    std::byte* const origin =
        at.is_own() ? base[static_cast<std::size_t>(at.buffer)] : peers->at(at.rank, at.buffer);
    const auto base_address = reinterpret_cast<std::intptr_t>(origin);
    return reinterpret_cast<std::byte*>(base_address + at.offset);
  }
};

}  // namespace weft
