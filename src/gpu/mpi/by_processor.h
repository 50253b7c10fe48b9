// What the agent's thread moves by itself for parts of a call: data in memory of the processor's
// that do not lie as the parts need them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "gpu/operation.h"

namespace weft::gpu {

// Data that a type with holes describes, in one piece: so they can be cut at any byte, as the data
// of the other ranks are.
class Packing {
 public:
  // Changed: by the collective.
  Packing(void* buffer, std::int64_t elements, MPI_Datatype type, bool is_read, bool is_changed);

  std::byte* bytes() { return bytes_.data(); }
  // Before the first part is sent, and when the last one has come.
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
  std::vector<Part> parts;  // their copies; the addresses of the device's are the processor's here
  std::vector<Packing> packings;

  // Before a part starts, and when it has ended.
  Result<bool> bring(std::size_t part);
  Result<bool> take(std::size_t part);

 private:
  std::size_t brought_ = 0, taken_ = 0;
};

}  // namespace weft::gpu
