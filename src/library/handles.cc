// Looks up the predefined MPI handles, which each MPI family defines in a different way.
#include "library/handles.h"

#include <type_traits>

namespace weft {

Handles handles;

#ifdef WEFT_FAMILY_OPENMPI

bool bind_handles(void* (*find)(const char* name)) {
  bool complete = true;
  const auto bind = [&](auto& handle, const char* symbol) {
    void* address = find(symbol);
    complete = complete && address;
    handle = reinterpret_cast<std::remove_reference_t<decltype(handle)>>(address);
  };
  bind(handles.comm_null, "ompi_mpi_comm_null");
  bind(handles.comm_world, "ompi_mpi_comm_world");
  bind(handles.comm_self, "ompi_mpi_comm_self");
  bind(handles.request_null, "ompi_request_null");
  bind(handles.datatype_null, "ompi_mpi_datatype_null");
  bind(handles.byte, "ompi_mpi_byte");
  bind(handles.int64, "ompi_mpi_int64_t");
  bind(handles.op_null, "ompi_mpi_op_null");
  bind(handles.sum, "ompi_mpi_op_sum");
  bind(handles.min, "ompi_mpi_op_min");
  bind(handles.max, "ompi_mpi_op_max");
  bind(handles.prod, "ompi_mpi_op_prod");
  bind(handles.band, "ompi_mpi_op_band");
  bind(handles.errors_return, "ompi_mpi_errors_return");
  bind(handles.info_null, "ompi_mpi_info_null");
  return complete;
}

#else

bool bind_handles(void* (*)(const char* name)) {
  handles.comm_null = MPI_COMM_NULL;
  handles.comm_world = MPI_COMM_WORLD;
  handles.comm_self = MPI_COMM_SELF;
  handles.request_null = MPI_REQUEST_NULL;
  handles.datatype_null = MPI_DATATYPE_NULL;
  handles.byte = MPI_BYTE;
  handles.int64 = MPI_INT64_T;
  handles.op_null = MPI_OP_NULL;
  handles.sum = MPI_SUM;
  handles.min = MPI_MIN;
  handles.max = MPI_MAX;
  handles.prod = MPI_PROD;
  handles.band = MPI_BAND;
  handles.errors_return = MPI_ERRORS_RETURN;
  handles.info_null = MPI_INFO_NULL;
  return true;
}

#endif

}  // namespace weft
