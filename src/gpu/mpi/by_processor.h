// Copies that the agent's thread makes, for data in host memory that do not lie as the chunks of a
// collective need them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "gpu/operation.h"

namespace weft::gpu {

// Packing: a packed copy of data whose datatype has gaps. It can be divided at any byte, like the
// data of other ranks.
class Packing {
 public:
  // is_read, is_changed: whether the collective reads the buffer, and whether it writes to it.
  Packing(void* buffer, std::int64_t elements, MPI_Datatype type, bool is_read, bool is_changed);

  std::byte* bytes() { return bytes_.data(); }
  // pack() must be called before the first chunk is sent, and unpack() after the last one has
  // arrived.
  Result<bool> pack();
  Result<bool> unpack();

 private:
  template <class Move>
  Result<bool> in_pieces(const Move& move);

  std::byte* buffer_;
  std::int64_t elements_;
  MPI_Datatype type_;
  bool is_read_, is_changed_;
  std::int64_t size_, extent_;
  std::vector<std::byte> bytes_;
};

struct ByProcessor {
  // The copies that the host makes for each chunk. Copy::device is an address in host memory here.
  std::vector<Chunk> chunks;
  std::vector<Packing> packings;

  // bring() must be called before a chunk starts, and take() after it has ended. They make the
  // copies in `chunks`.
  Result<bool> bring(std::size_t chunk);
  Result<bool> take(std::size_t chunk);

 private:
  std::size_t brought_ = 0, taken_ = 0;
};

}  // namespace weft::gpu
