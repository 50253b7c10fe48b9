// AlltoallBlocks: the blocks of an alltoall, alltoallv or alltoallw on one rank. If the call is in
// place, the receive buffer also holds the outgoing data, which must be packed into a temporary
// buffer before anything is received.
#pragma once

#include <vector>

#include "schedule/builder.h"

namespace weft {

class AlltoallBlocks {
 public:
  explicit AlltoallBlocks(Builder& builder) : b_(builder) {}

  // Packs the outgoing blocks of an in-place call into a temporary buffer, in a round of its own.
  // Must precede send_to(); does nothing if the call is not in place.
  void save_input();
  void send_to(int peer);
  void receive_from(int peer) { b_.recv(peer, incoming(b_.shape(), peer)); }

 private:
  Builder& b_;
  std::vector<Operand> saved_;  // packed blocks of an in-place call, indexed by peer
};

}  // namespace weft
