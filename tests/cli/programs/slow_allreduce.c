/* A PMPI tool between Weft and the MPI library. It makes MPI_Allreduce so slow that other load
 * on the machine cannot hide the difference. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <unistd.h>

static int slow(const char* name, const void* in, void* out, int count, MPI_Datatype type,
                MPI_Op op, MPI_Comm comm) {
  int (*next)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
  *(void**)&next = dlsym(RTLD_NEXT, name);
  usleep(50000);
  return next(in, out, count, type, op, comm);
}

int PMPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm) {
  return slow("PMPI_Allreduce", in, out, count, type, op, comm);
}

int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
  return slow("MPI_Allreduce", in, out, count, type, op, comm);
}
