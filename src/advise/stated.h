// Reads off a collective's arguments how many bytes go between this rank and others, and of what
// kind: ranks must state the same of what they give to each other.
#pragma once

#include <cstdint>

#include "advise/recorder.h"
#include "transport/mpi/call.h"

namespace weft::advise {

inline constexpr int kPeers = 16;  // amounts that vary by peer are known in communicators so large
inline constexpr std::uint64_t kNoBytes = UINT64_MAX;  // nothing is stated

struct Stated {
  std::uint64_t bytes = kNoBytes;  // that must be equal on all ranks
  std::uint64_t own = kNoBytes;    // that this rank sends to itself, and must be equal to `bytes`
  bool by_peer = false;            // these are stated:
  std::uint64_t to[kPeers], from[kPeers];
  // 0: any; else numbers of the meaning. Types of one byte are any, since programs move all data as
  // bytes, and so are pairs and derived types. Complex numbers count as two real ones.
  std::uint8_t type = 0, op = 0;
};

bool has_root(Kind kind);
// Reads only arguments that are significant on this rank.
Stated stated_by(const Call& call, const Communicator& comm);

}  // namespace weft::advise
