// Packer: copies blocks of a user's buffer into consecutive bytes of a temporary buffer, or back.
// Blocks that are contiguous in the user's buffer are merged into one copy, so algorithms can
// proceed block by block for regular and irregular collectives alike.
#pragma once

#include "schedule/builder.h"

namespace weft {

class Packer {
 public:
  enum class Way : std::uint8_t { pack, unpack };

  Packer(Builder& builder, Way way, Location packed) : b_(builder), way_(way), packed_(packed) {}

  void add(const Operand& block);
  // Leaves out a block that is in its place already. Its space among the packed bytes stays unused.
  void skip(const Operand& block);
  void finish();

 private:
  bool continues(const Operand& block) const;

  Builder& b_;
  Way way_;
  Location packed_;  // where the first block of `run_` begins among the packed bytes
  Operand run_;      // contiguous blocks, to which no copy step belongs yet
};

inline std::int64_t payload_bytes(const Builder& b, const Operand& operand) {
  return payload_bytes(b.shape(), operand);
}

}  // namespace weft
