// Computes from a collective's arguments how many bytes this rank exchanges with others, and of
// which datatype. Two ranks must agree about the data between them.
#pragma once

#include <cstdint>

#include "advise/recorder.h"
#include "transport/mpi/call.h"

namespace weft::advise {

// The largest number of ranks for which bytes are compared between each pair of ranks.
inline constexpr int kPeers = 16;
// Stands for a number of bytes that is unknown or does not matter.
inline constexpr std::uint64_t kNoBytes = UINT64_MAX;

struct Stated {
  std::uint64_t bytes = kNoBytes;  // bytes that must be equal on all ranks
  std::uint64_t own = kNoBytes;    // bytes that this rank sends to itself, which must equal `bytes`
  bool by_peer = false;            // true if `to` and `from` contain the bytes for each peer
  std::uint64_t to[kPeers], from[kPeers];
  // Numbers that stand for the datatype and the operator of the call. They are compared between
  // ranks only if neither is 0. The number is 0 for one-byte types, since programs move any data as
  // bytes, and for pair types and derived types. A complex number counts as two real numbers.
  std::uint8_t type = 0, op = 0;
};

bool has_root(Kind kind);
// Returns the amounts of data that this rank states by its arguments. It reads only arguments that
// are significant on this rank.
Stated stated_by(const Call& call, const Communicator& comm);

}  // namespace weft::advise
