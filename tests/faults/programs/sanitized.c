// A program that is built with a sanitizer. It makes one sum and starts a child process, into which
// Weft must load neither itself nor the sanitizer.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int one = 1, sum = 0, ranks = 0;
  MPI_Request request;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  printf("%s, preload=%s.\n", sum == ranks ? "right" : "wrong",
         getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "");
  MPI_Finalize();
  return 0;
}
