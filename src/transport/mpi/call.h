// Call: the normalised record of one intercepted collective call, as the application made it.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "interpose/generated/call_ids.h"
#include "schedule/collective.h"

namespace weft {

// Counts or displacements, as given: one number, or an array of the application's with one per
// peer; of type int, MPI_Aint or, in the `_c` calls, MPI_Count.
class Numbers {
 public:
  constexpr Numbers() = default;
  template <class T>
  constexpr Numbers(T one) : one_(one) {}
  template <class T>
  constexpr Numbers(const T* array) : array_(array), width_(sizeof(T)) {}

  std::int64_t at(int index) const {
    if (!array_) return one_;
    if (width_ == sizeof(int)) return array<int>()[index];
    return array<std::int64_t>()[index];
  }
  bool is_array() const { return array_ != nullptr; }
  // As the library's call takes them.
  template <class T>
  T one() const {
    return static_cast<T>(one_);
  }
  template <class T>
  const T* array() const {
    return static_cast<const T*>(array_);
  }

  // Moves to a copy of the first `count` numbers, which is added to `storage`.
  void keep(int count, std::vector<std::vector<std::byte>>& storage) {
    if (!array_) return;
    const auto* begin = static_cast<const std::byte*>(array_);
    storage.emplace_back(begin, begin + static_cast<std::size_t>(count) * width_);
    array_ = storage.back().data();
  }

 private:
  const void* array_ = nullptr;
  std::size_t width_ = 0;
  std::int64_t one_ = 0;
};

// Reductions, scan and bcast fill both sides with the same count, type and, for bcast, buffer.
struct Call {
  Kind kind = Kind::barrier;
  interpose::CallId form{};       // the non-blocking call with the same arguments
  const void* sendbuf = nullptr;  // may be MPI_IN_PLACE
  Numbers sendcounts{};
  Numbers senddispls{};
  MPI_Datatype sendtype{};
  const MPI_Datatype* sendtypes = nullptr;
  void* recvbuf = nullptr;  // of a scatter: may be MPI_IN_PLACE
  Numbers recvcounts{};
  Numbers recvdispls{};
  MPI_Datatype recvtype{};
  const MPI_Datatype* recvtypes = nullptr;
  MPI_Op op{};
  int root = 0;
  MPI_Comm comm{};
};

}  // namespace weft
