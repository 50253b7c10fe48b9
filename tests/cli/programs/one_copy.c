// Usage: one_copy BYTES CALLS [hole]. Rank 0 sends BYTES bytes from its own memory to all ranks by
// MPI_Bcast, CALLS times. It prints "right" on each rank if all data have arrived. hole: a page in
// the middle of the buffer is not mapped.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(int argc, char** argv) {
  const long bytes = atol(argv[1]), calls = atol(argv[2]);
  int rank, right = 1, all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  unsigned char* const data =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (argc > 3 && rank == 0) mprotect(data + bytes / 2 / 4096 * 4096, 4096, PROT_NONE);
  for (long call = 0; call < calls; ++call) {
    for (long i = 0; argc == 3 && i < bytes; ++i) data[i] = rank == 0 ? (i * 31 + call) % 251 : 0;
    MPI_Bcast(data, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (long i = 0; i < bytes; ++i) right = right && data[i] == (i * 31 + call) % 251;
  }
  MPI_Reduce(&right, &all, 1, MPI_INT, MPI_LAND, 0, MPI_COMM_WORLD);
  if (rank == 0) puts(all ? "right" : "wrong");
  MPI_Finalize();
  return 0;
}
