/* A PMPI tool between Weft and the MPI library. Its MPI_Allreduce of zeroes takes no time in the
 * first two calls that each side makes in its turn of a native_comparison, and long in the later
 * calls, which are those that count. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <string.h>
#include <unistd.h>

enum { COLD = 1, WARM_UPS = 2, COUNTED = 2 };

static int are_zeroes(const char* data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    if (data[i]) return 0;
  return 1;
}

int PMPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm) {
  static int made;
  int (*next)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
  if (in != MPI_IN_PLACE && type == MPI_INT && are_zeroes(in, sizeof(int) * (size_t)count)) {
    const int call = made++;
    if (call < COLD || (call - COLD) % (WARM_UPS + COUNTED) >= WARM_UPS) usleep(50000);
    memset(out, 0, sizeof(int) * (size_t)count);
    return MPI_SUCCESS;
  }
  *(void**)&next = dlsym(RTLD_NEXT, "PMPI_Allreduce");
  return next(in, out, count, type, op, comm);
}
