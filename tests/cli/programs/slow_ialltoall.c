/* A PMPI tool between Weft and the MPI library, which makes MPI_Ialltoall 5 ms slower. */
#include <mpi.h>
#include <unistd.h>

int MPI_Ialltoall(const void* in, int sent, MPI_Datatype send_type, void* out, int received,
                  MPI_Datatype receive_type, MPI_Comm comm, MPI_Request* request) {
  usleep(5000);
  return PMPI_Ialltoall(in, sent, send_type, out, received, receive_type, comm, request);
}
