// Implements Packer: adds a copy to the schedule only when the next block does not continue the
// previous ones.
#include "coll/packer.h"

namespace weft {

bool Packer::continues(const Operand& block) const {
  return run_.unit == block.unit && run_.at + run_.count * b_.extent(run_.unit) == block.at;
}

void Packer::add(const Operand& block) {
  if (payload_bytes(b_, block) == 0) return;
  if (run_.count > 0 && continues(block)) {
    run_.count += block.count;
    return;
  }
  finish();
  run_ = block;
}

void Packer::skip(const Operand& block) {
  finish();
  packed_ = packed_ + payload_bytes(b_, block);
}

void Packer::finish() {
  const std::int64_t bytes = payload_bytes(b_, run_);
  const Operand packed{packed_, bytes, Unit::byte};
  if (way_ == Way::pack)
    b_.copy(run_, packed);
  else
    b_.copy(packed, run_);
  packed_ = packed_ + bytes;
  run_ = {};
}

}  // namespace weft
