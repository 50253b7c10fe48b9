// The blocks of an alltoall on one rank, in place or not.
// Why: in place, the receive buffer holds what is to be sent, so it is packed into temp before
// anything may be received.
#pragma once

#include "schedule/builder.h"

namespace weft {

class AlltoallBlocks {
 public:
  explicit AlltoallBlocks(Builder& builder) : b_(builder) {}

  // In place: saves the data to be sent, as a round of its own. Needed before send_to().
  void save_input();
  void send_to(int peer);
  void receive_from(int peer);
  void copy_own();

  std::int64_t bytes() const { return b_.shape().recv.bytes(); }
  Operand outgoing(int peer, int blocks = 1) const;  // in the user's buffer
  Operand incoming(int peer) const;

 private:
  Builder& b_;
  Location saved_;
};

}  // namespace weft
