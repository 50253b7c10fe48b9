// Call: the arguments of an intercepted collective call, in the same form for all collectives.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "library/generated/call_ids.h"
#include "schedule/collective.h"

namespace weft {

// Copies of the application's arrays of counts, displacements and datatypes, as bytes.
using KeptArrays = std::vector<std::vector<std::byte>>;

// Numbers: counts or displacements as an application passes them: a single number, or an array with
// an entry per peer, of type int, MPI_Aint or (in the `_c` calls) MPI_Count.
class Numbers {
 public:
  constexpr Numbers() = default;
  template <class T>
  constexpr Numbers(T one) : one_(one) {}
  template <class T>
  Numbers(const T* array)
      : one_(reinterpret_cast<std::intptr_t>(array)), width_(array ? sizeof(T) : 0) {}

  std::int64_t at(int index) const {
    if (!is_array()) return one_;
    if (width_ == sizeof(int)) return array<int>()[index];
    return array<std::int64_t>()[index];
  }
  bool is_array() const { return width_ != 0; }
  // Returns the single number in the type T that the MPI library's call takes.
  template <class T>
  T one() const {
    return static_cast<T>(one_);
  }
  template <class T>
  const T* array() const {
    return reinterpret_cast<const T*>(static_cast<std::intptr_t>(one_));
  }

  // Returns whether both are the same single number, or arrays whose first `count` entries are
  // equal.
  bool is_like(const Numbers& other, int count) const {
    if (width_ != other.width_) return false;
    if (!is_array()) return one_ == other.one_;
    const auto bytes = width_ * static_cast<std::size_t>(count);
    return bytes == 0 || std::memcmp(array<std::byte>(), other.array<std::byte>(), bytes) == 0;
  }

  // Makes the array begin `index` entries later.
  void skip(int index) { one_ += static_cast<std::int64_t>(width_) * index; }

  // Replaces the application's array by a copy of its first `count` entries. The copy is added to
  // `kept`.
  void keep(int count, KeptArrays& kept) {
    // An empty array is kept as it is, since an MPI library may refuse a null pointer.
    if (!is_array() || count == 0) return;
    const auto* begin = array<std::byte>();
    kept.emplace_back(begin, begin + static_cast<std::size_t>(count) * width_);
    one_ = reinterpret_cast<std::intptr_t>(kept.back().data());
  }

 private:
  std::int64_t one_ = 0;   // the single number, or the address of the array
  std::size_t width_ = 0;  // bytes of an array entry; 0 for a single number
};

// The arguments of an intercepted collective call. For reductions, scan and bcast, the send and the
// receive side have equal counts and datatypes; for bcast, also equal buffers.
struct Call {
  Kind kind = Kind::barrier;
  CallId form{};  // the non-blocking collective to which the arguments belong
  int root = 0;
  const void* sendbuf = nullptr;  // send buffer; may be MPI_IN_PLACE
  void* recvbuf = nullptr;        // receive buffer; may be MPI_IN_PLACE in a scatter
  Numbers sendcounts{};
  Numbers recvcounts{};
  MPI_Datatype sendtype{};
  MPI_Datatype recvtype{};
  MPI_Op op{};
  MPI_Comm comm{};
  Numbers senddispls{};
  Numbers recvdispls{};
  const MPI_Datatype* sendtypes = nullptr;
  const MPI_Datatype* recvtypes = nullptr;

  bool has_arrays() const { return sendcounts.is_array() || recvcounts.is_array(); }
};

// Replaces the arrays in `call`, which the application may overwrite, by copies, which are added to
// `kept`. sends, recvs: the numbers of entries of the send and the receive arrays.
inline void keep_arrays(Call* call, int sends, int recvs, KeptArrays* kept) {
  call->sendcounts.keep(sends, *kept);
  call->senddispls.keep(sends, *kept);
  call->recvcounts.keep(recvs, *kept);
  call->recvdispls.keep(recvs, *kept);
  const auto keep_types = [&](const MPI_Datatype*& types, int count) {
    // A null pointer stays one, since MPI tells it from an empty array.
    if (!types || count == 0) return;
    const auto* begin = reinterpret_cast<const std::byte*>(types);
    kept->emplace_back(begin, begin + static_cast<std::size_t>(count) * sizeof *types);
    types = reinterpret_cast<const MPI_Datatype*>(kept->back().data());
  };
  keep_types(call->sendtypes, sends);
  keep_types(call->recvtypes, recvs);
}

}  // namespace weft
