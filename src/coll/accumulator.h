// Accumulator: this rank's partial result of a reduction, always that of a run of consecutive
// ranks, absorbing the neighbouring runs one after the other.
// Why: a reduce step overwrites its higher-ranked operand, so the value moves between two buffers.
// Knowing all parts beforehand, it starts in the buffer from which it ends in the right one, and
// the one copy that may be needed runs while the first message is under way.
#pragma once

#include <vector>

#include "schedule/builder.h"

namespace weft {

enum class Side : std::uint8_t { lower, higher };

class Accumulator {
 public:
  // The value begins as the builder's input; `parts` says on which side of it each part to come
  // lies; after the last one, finish() leaves the value at `target`, which must be writable.
  Accumulator(Builder& builder, Location target, std::vector<Side> parts);

  Location value() const { return value_; }
  // Posts the receive of the next part. value() may be sent in the same round.
  void receive(int peer);
  // Ends the round and takes in the part that was received.
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
