// Packs and unpacks elements of any datatype of the application.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace weft {

struct Elements {
  void* address = nullptr;  // address of the first element; may be MPI_BOTTOM
  std::int64_t count = 0;
  MPI_Datatype type{};
};

// Pack elements to `to`, and unpack them from `from`. Both functions return an MPI error code.
// bytes: the packed size of all elements.
int pack_elements(const Elements& from, void* to, std::int64_t bytes, MPI_Comm comm);
int unpack_elements(const void* from, std::int64_t bytes, const Elements& to, MPI_Comm comm);

}  // namespace weft
