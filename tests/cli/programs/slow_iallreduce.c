/* A tool between Weft and the MPI library, whose MPI_Iallreduce takes 5 ms longer. */
#include <mpi.h>
#include <unistd.h>

int MPI_Iallreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request) {
  usleep(5000);
  return PMPI_Iallreduce(in, out, count, type, op, comm, request);
}
