// Accumulator: this rank's partial result of a reduction. It covers a run of consecutive ranks, and
// takes in the partial results of neighbouring runs one after the other. A reduce step overwrites
// the operand of the higher ranks, so the partial result moves between two buffers. Its moves are
// known beforehand, so it starts in that buffer from which it ends at its target. This may need one
// copy at the beginning, which overlaps with the first message.
#pragma once

#include <vector>

#include "schedule/builder.h"

namespace weft {

enum class Side : std::uint8_t { lower, higher };

class Accumulator {
 public:
  // The partial result starts as this rank's input. `parts` says for each operand to be received
  // whether it comes from lower or from higher ranks. finish() must follow the last one; the result
  // is then at `target`, which must be writable.
  Accumulator(Builder& builder, Location target, std::vector<Side> parts);

  Location value() const { return value_; }
  // Posts the receive of the next operand. value() may be sent in the same round.
  void receive(int peer);
  // Ends the round, and reduces the received operand into the partial result.
  void absorb();
  void finish();

 private:
  bool read_only() const { return value_.buffer == Buffer::send; }
  bool odd_moves_left() const;
  Location other(Location buffer);

  Builder& builder_;
  Location target_;
  Location spare_;
  bool has_spare_ = false;
  std::vector<Side> parts_;
  std::size_t next_ = 0;
  Location value_;
  Location inbox_;
};

}  // namespace weft
