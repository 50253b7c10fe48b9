/* A library whose constructor initialises MPI and calls a collective when the library is loaded.
 * The dynamic linker runs this constructor before those of a preloaded library. With -DPROGRAM
 * this source is the program that is linked to the library. */
#include <mpi.h>
#include <stdio.h>

enum { CALLS = 64 };

void take_part(void);

#ifndef PROGRAM
void take_part(void) {
  int rank, ranks, mine[CALLS], sums[CALLS], wrong = 0;
  MPI_Request requests[CALLS];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < CALLS; ++i) {
    mine[i] = rank + i;
    MPI_Iallreduce(&mine[i], &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
    if (i % 2 == 0) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  }
  MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < CALLS; ++i) wrong += sums[i] != ranks * (ranks - 1) / 2 + ranks * i;
  if (wrong) printf("%d wrong\n", wrong);
}

__attribute__((constructor)) static void begin(void) {
  MPI_Init(NULL, NULL);
  take_part();
}
#else
int main(void) {
  take_part();
  puts("right");
  return MPI_Finalize();
}
#endif
