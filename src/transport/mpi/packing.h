// MPI_Pack and MPI_Unpack of any elements of the application's.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace weft {

struct Elements {
  void* address = nullptr;  // may be MPI_BOTTOM
  std::int64_t count = 0;
  MPI_Datatype type{};
};

// `bytes`: those of all elements. Both return an MPI error code.
int pack_elements(const Elements& from, void* to, std::int64_t bytes, MPI_Comm comm);
int unpack_elements(const void* from, std::int64_t bytes, const Elements& to, MPI_Comm comm);

}  // namespace weft
