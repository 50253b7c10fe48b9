// Packer: copies blocks of a user's buffer into consecutive bytes of temp, or back.
// Why: blocks that lie one after the other in the user's buffer take one copy together, so that
// algorithms may go block by block for regular and irregular collectives alike.
#pragma once

#include "schedule/builder.h"

namespace weft {

class Packer {
 public:
  enum class Way : std::uint8_t { pack, unpack };

  Packer(Builder& builder, Way way, Location packed) : b_(builder), way_(way), packed_(packed) {}

  void add(const Operand& block);
  // Advances past a block that is already there, without a copy.
  void skip(const Operand& block);
  void finish();

 private:
  bool continues(const Operand& block) const;

  Builder& b_;
  Way way_;
  Location packed_;  // of the first block in `run_`
  Operand run_;      // not copied yet
};

inline std::int64_t payload_bytes(const Builder& b, const Operand& operand) {
  return payload_bytes(b.shape(), operand);
}

}  // namespace weft
