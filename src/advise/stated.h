// Derives from a collective's arguments how many bytes this rank exchanges with others, and of
// which datatype. Two ranks must state the same about the data between them.
#pragma once

#include <cstdint>

#include "advise/recorder.h"
#include "transport/mpi/call.h"

namespace weft::advise {

// Largest communicator in which amounts that differ by peer are compared.
inline constexpr int kPeers = 16;
inline constexpr std::uint64_t kNoBytes = UINT64_MAX;  // value that says that nothing is stated

struct Stated {
  std::uint64_t bytes = kNoBytes;  // bytes that must be equal on all ranks
  std::uint64_t own = kNoBytes;    // bytes that this rank sends to itself, which must equal `bytes`
  bool by_peer = false;            // true if `to` and `from` hold bytes for each peer
  std::uint64_t to[kPeers], from[kPeers];
  // Numbers that stand for the datatype and the operator; 0 matches any. One-byte types match any,
  // since programs move all data as bytes, and so do pair types and derived types. A complex number
  // counts as two real ones.
  std::uint8_t type = 0, op = 0;
};

bool has_root(Kind kind);
// Returns what this rank states by its arguments. It reads only those that are significant on this
// rank.
Stated stated_by(const Call& call, const Communicator& comm);

}  // namespace weft::advise
