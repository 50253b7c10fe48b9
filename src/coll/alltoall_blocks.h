// The blocks of an alltoall, alltoallv or alltoallw on one rank, in place or not.
// Why: in place, the receive buffer holds what is to be sent, so it is packed into temp before
// anything may be received.
#pragma once

#include <vector>

#include "schedule/builder.h"

namespace weft {

class AlltoallBlocks {
 public:
  explicit AlltoallBlocks(Builder& builder) : b_(builder) {}

  // Saves the data to be sent, as a round of its own. In place it must precede send_to().
  void save_input();
  void send_to(int peer);
  void receive_from(int peer) { b_.recv(peer, incoming(b_.shape(), peer)); }

 private:
  Builder& b_;
  std::vector<Operand> saved_;  // in place: by peer
};

}  // namespace weft
