/* A PMPI tool between Weft and the MPI library. It makes MPI_Bcast so slow that other load on
 * the machine cannot hide the difference. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <unistd.h>

int PMPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  int (*next)(void*, int, MPI_Datatype, int, MPI_Comm);
  *(void**)&next = dlsym(RTLD_NEXT, "PMPI_Bcast");
  if (count >= 65536) usleep(50000);
  return next(data, count, type, root, comm);
}
