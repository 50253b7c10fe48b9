/* Usage: deferred_calls [LIBRARY]. Two ranks form a ring. Rank 0 starts many collectives before
 * rank 1 starts any. Some of them take arrays of counts. Both neighbours of a rank are the other
 * rank. LIBRARY, such as the driver of a device, is loaded first. */
#include <dlfcn.h>
#include <mpi.h>

#include "expected.h"

enum { ROUNDS = 20, DEPTH = 12, ROOT = 1 };

static double one[DEPTH], sum[DEPTH], given[DEPTH][2], received[DEPTH][2], all[DEPTH][2];
static MPI_Request requests[3 * DEPTH];

static void start(MPI_Comm ring, int round) {
  static const int counts[2] = {1, 1}, places[2] = {0, 1};
  for (int i = 0; i < DEPTH; ++i) {
    one[i] = rank + round + i;
    given[i][0] = given[i][1] = one[i];
    MPI_Iallreduce(one + i, sum + i, 1, MPI_DOUBLE, MPI_SUM, ring, requests + 3 * i);
    MPI_Igatherv(one + i, 1, MPI_DOUBLE, all[i], rank == ROOT ? counts : NULL,
                 rank == ROOT ? places : NULL, MPI_DOUBLE, ROOT, ring, requests + 3 * i + 1);
    MPI_Ineighbor_alltoallv(given[i], counts, places, MPI_DOUBLE, received[i], counts, places,
                            MPI_DOUBLE, ring, requests + 3 * i + 2);
  }
}

int main(int argc, char** argv) {
  int level, two = 2, periodic = 1;
  MPI_Comm ring;
  if (argc > 1 && !dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)) return puts(dlerror());
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Cart_create(MPI_COMM_WORLD, 1, &two, &periodic, 0, &ring);
  for (int round = 0; round < ROUNDS; ++round) {
    if (rank == 1) MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    start(ring, round);
    if (rank == 0) MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD);
    MPI_Waitall(3 * DEPTH, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < DEPTH; ++i) {
      expect(sum[i], 2 * (round + i) + 1, "sum", round);
      for (int k = 0; k < 2; ++k) {
        expect(received[i][k], 1 - rank + round + i, "neighbor", round);
        if (rank == ROOT) expect(all[i][k], k + round + i, "gathered", round);
      }
    }
  }
  MPI_Comm_free(&ring);
  if (!wrong) puts("right");
  MPI_Finalize();
  return wrong;
}
