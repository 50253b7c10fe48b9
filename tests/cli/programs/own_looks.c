/* Usage: own_looks FILE. Rank 1 repeatedly puts 2 MiB into a window that rank 0 has exposed.
 * Neither rank makes an MPI call until the data have arrived. Rank 0 prints the least number of
 * times that its thread slept during one such transfer. */
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "own_thread.h"

enum { COUNT = 1 << 18, TIMES = 5 };

int main(int argc, char** argv) {
  const int file = open(argv[1], O_RDWR | O_CREAT, 0600);
  double* const out = malloc(COUNT * sizeof *out);
  double* const base = calloc(COUNT, sizeof *base);
  volatile int* arrived; /* number of transfers that have arrived */
  long least = -1;
  int rank, other;
  MPI_Group world, others;
  MPI_Win window;
  if (ftruncate(file, 4096) != 0) return 1;
  arrived = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &other, &others);
  MPI_Win_create(base, COUNT * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  for (int time = 1; time <= TIMES; ++time) {
    for (int i = 0; i < COUNT; ++i) out[i] = i + time;
    if (rank == 0) {
      const volatile double* const last = &base[COUNT - 1];
      const long before = sleeps_of_thread();
      MPI_Win_post(others, 0, window);
      while (*last != COUNT - 1 + time) continue;
      const long sleeps = sleeps_of_thread() - before;
      if (least < 0 || sleeps < least) least = sleeps;
      *arrived = time;
      MPI_Win_wait(window);
    } else {
      MPI_Win_start(others, 0, window);
      MPI_Put(out, COUNT, MPI_DOUBLE, 0, 0, COUNT, MPI_DOUBLE, window);
      while (*arrived != time) continue;
      MPI_Win_complete(window);
    }
  }
  if (rank == 0) printf("%ld\n", least);
  MPI_Win_free(&window);
  MPI_Group_free(&others);
  MPI_Group_free(&world);
  MPI_Finalize();
  free(out);
  free(base);
  return 0;
}
