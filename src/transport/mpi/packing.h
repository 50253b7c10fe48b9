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

// pack_elements() packs elements to `to`, and unpack_elements() unpacks them from `from`. bytes:
// the packed size of all elements. Both return an MPI error code.
int pack_elements(const Elements& from, void* to, std::int64_t bytes, MPI_Comm comm);
int unpack_elements(const void* from, std::int64_t bytes, const Elements& to, MPI_Comm comm);

}  // namespace weft
