// Accumulator: this rank's partial result of a reduction. It covers a run of consecutive ranks and
// absorbs the neighbouring runs one after the other. A reduce step overwrites its higher-ranked
// operand, so the partial result moves between two buffers. Its moves are known beforehand, so it
// starts in the buffer from which it ends at the target. The one copy that may be needed for this
// overlaps with the first message.
#pragma once

#include <vector>

#include "schedule/builder.h"

namespace weft {

enum class Side : std::uint8_t { lower, higher };

class Accumulator {
 public:
  // The value starts as the builder's input. `parts` says for each part whether it comes from lower
  // or higher ranks. After the last part, finish() leaves the value at `target`, which must be
  // writable.
  Accumulator(Builder& builder, Location target, std::vector<Side> parts);

  Location value() const { return value_; }
  // Posts the receive of the next part. The present value() may be sent in the same round.
  void receive(int peer);
  // Ends the round and reduces the received part into the value.
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
