/* Exceeds what the tables of `weft advise` can hold. Usage: advise_many communicators (100
 * communicators, each used in three rounds), advise_many sites (1,100 call sites) or advise_many
 * calls (10,000 calls at one site). */
#include <mpi.h>
#include <string.h>

#define TEN(x) x x x x x x x x x x
#define BARRIER MPI_Barrier(MPI_COMM_WORLD);

static void communicators(void) {
  MPI_Comm comms[100];
  for (int i = 0; i < 100; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < 100; ++i) MPI_Barrier(comms[i]);
  for (int i = 0; i < 100; ++i) MPI_Comm_free(&comms[i]);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (strcmp(argv[1], "communicators") == 0) {
    communicators();
  } else if (strcmp(argv[1], "calls") == 0) {
    for (int i = 0; i < 10000; ++i) MPI_Barrier(MPI_COMM_SELF);
  } else {
    TEN(TEN(TEN(BARRIER)))
    TEN(TEN(BARRIER))
  }
  MPI_Finalize();
  return 0;
}
