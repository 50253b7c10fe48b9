// Holds the predefined MPI handles that Weft itself needs, such as MPI_COMM_WORLD. They are looked
// up at run time instead of using the macros of mpi.h. In Open MPI these macros are addresses of
// the MPI library's variables, and a preloaded library that refers to such variables cannot be
// loaded into a program without MPI.
#pragma once

#include <mpi.h>

namespace weft {

struct Handles {
  MPI_Comm comm_null{};
  MPI_Comm comm_world{};
  MPI_Comm comm_self{};
  MPI_Request request_null{};
  MPI_Datatype datatype_null{};
  MPI_Datatype byte{};
  MPI_Datatype int64{};
  MPI_Op op_null{};
  MPI_Op sum{};
  MPI_Op min{};
  MPI_Op max{};
  MPI_Op prod{};
  MPI_Op band{};
  MPI_Errhandler errors_return{};
  MPI_Info info_null{};
};

extern Handles handles;

// Looks up the handles. find() must return the address of a symbol in the MPI library, or nullptr.
// Returns false if the library lacks a required symbol.
bool bind_handles(void* (*find)(const char* name));

}  // namespace weft
