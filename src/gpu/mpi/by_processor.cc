#include "gpu/mpi/by_processor.h"

#include <algorithm>
#include <cstring>

#include "gpu/mpi/sides.h"

namespace weft::gpu {

Packing::Packing(void* buffer, std::int64_t elements, MPI_Datatype type, bool is_read,
                 bool is_changed)
    : buffer_(static_cast<std::byte*>(buffer)),
      elements_(elements),
      type_(type),
      is_read_(is_read),
      is_changed_(is_changed) {
  const Measures measures = measures_of(type);
  size_ = measures.size, extent_ = measures.extent;
  bytes_.resize(static_cast<std::size_t>(elements * size_));
}

// Calls move(data, elements, packed, bytes, position) for one piece of the data after the other.
// The numbers of a piece fit into an int, which MPI_Pack needs.
template <class Move>
Result<bool> Packing::in_pieces(const Move& move) {
  constexpr std::int64_t kMostBytes = 1 << 30;
  if (size_ == 0) return true;
  const std::int64_t most = std::max<std::int64_t>(1, kMostBytes / size_);
  for (std::int64_t first = 0; first < elements_; first += most) {
    const auto count = static_cast<int>(std::min(most, elements_ - first));
    const auto bytes = static_cast<int>(count * size_);
    int position = 0;
    const int code =
        move(buffer_ + first * extent_, count, bytes_.data() + first * size_, bytes, &position);
    if (code != MPI_SUCCESS) return Error{"a data type with holes cannot be packed", code};
  }
  return true;
}

Result<bool> Packing::pack() {
  if (!is_read_) return true;
  return in_pieces([this](std::byte* data, int count, std::byte* to, int bytes, int* position) {
    return MPI_Pack(data, count, type_, to, bytes, position, MPI_COMM_SELF);
  });
}

Result<bool> Packing::unpack() {
  if (!is_changed_) return true;
  return in_pieces([this](std::byte* data, int count, std::byte* from, int bytes, int* position) {
    return MPI_Unpack(from, bytes, position, data, count, type_, MPI_COMM_SELF);
  });
}

Result<bool> ByProcessor::bring(std::size_t chunk) {
  if (brought_++ % chunks.size() == 0) {
    for (Packing& one : packings) {
      if (const auto packed = one.pack(); !packed) return packed;
    }
  }
  for (const Copy& one : chunks[chunk].in) {
    for (std::size_t row = 0; row < one.rows; ++row) {
      const auto* const from = reinterpret_cast<const std::byte*>(one.device) + row * one.pitch;
      std::memcpy(one.host + row * one.bytes, from, one.bytes);
    }
  }
  return true;
}

Result<bool> ByProcessor::take(std::size_t chunk) {
  for (const Copy& one : chunks[chunk].out) {
    for (std::size_t row = 0; row < one.rows; ++row) {
      auto* const to = reinterpret_cast<std::byte*>(one.device) + row * one.pitch;
      std::memcpy(to, one.host + row * one.bytes, one.bytes);
    }
  }
  if (++taken_ % chunks.size() != 0) return true;
  for (Packing& one : packings) {
    if (const auto unpacked = one.unpack(); !unpacked) return unpacked;
  }
  return true;
}

}  // namespace weft::gpu
