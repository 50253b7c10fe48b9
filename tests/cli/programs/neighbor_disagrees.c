/* Persistent neighbourhood collectives in which rank 2 expects first more and then less than
 * rank 0 sends. Each of four ranks has one neighbour, whose rank is greater by two. The exit
 * status is 0 if data arrive where they fit, and only the rank that expects too little gets an
 * error. With an argument, the calls are blocking and non-blocking ones, of which rank 2 expects
 * more in the last. It and the other rank of its node may also get an error then. */
#include <mpi.h>
#include <string.h>

#include "expected.h"

enum { SENT = 4, MOST = 8 };

static MPI_Comm neighbors(void) {
  const int to = (rank + 2) % 4;
  MPI_Comm made;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &to, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &made);
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  return made;
}

static void exchange(int expected_by_2) {
  const MPI_Comm comm = neighbors();
  const int sends = SENT, receives = rank == 2 ? expected_by_2 : SENT, at = 0;
  int given[SENT], taken[MOST], class = MPI_SUCCESS;
  MPI_Request request;
  for (int i = 0; i < SENT; ++i) given[i] = 10 * rank + i;
  for (int i = 0; i < MOST; ++i) taken[i] = -1;
  MPI_Neighbor_alltoallv_init(given, &sends, &at, MPI_INT, taken, &receives, &at, MPI_INT, comm,
                              MPI_INFO_NULL, &request);
  MPI_Start(&request);
  MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &class);
  const int fits = receives >= SENT;
  expect(class, fits ? MPI_SUCCESS : MPI_ERR_TRUNCATE, "class of error", expected_by_2);
  for (int i = 0; i < MOST && fits; ++i)
    expect(taken[i], i < SENT ? 10 * ((rank + 2) % 4) + i : -1, "element", i);
  MPI_Request_free(&request);
}

/* Makes so many calls, and then one in which rank 2 expects more than it gets. */
static void exchange_again(int calls, int is_blocking) {
  const MPI_Comm comm = neighbors();
  const int sends = SENT, at = 0;
  for (int call = 0; call <= calls; ++call) {
    const int is_last = call == calls, receives = is_last && rank == 2 ? MOST : SENT;
    int given[SENT], taken[MOST], class = MPI_SUCCESS;
    for (int i = 0; i < SENT; ++i) given[i] = 10 * rank + i + call;
    memset(taken, 0, sizeof taken);
    if (is_blocking) {
      MPI_Error_class(
          MPI_Neighbor_alltoallv(given, &sends, &at, MPI_INT, taken, &receives, &at, MPI_INT, comm),
          &class);
    } else {
      MPI_Request request;
      MPI_Ineighbor_alltoallv(given, &sends, &at, MPI_INT, taken, &receives, &at, MPI_INT, comm,
                              &request);
      MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &class);
    }
    if (is_last && rank >= 2 && class == MPI_ERR_TRUNCATE) break;
    expect(class, MPI_SUCCESS, "class of error", call);
    for (int i = 0; i < SENT; ++i)
      expect(taken[i], 10 * ((rank + 2) % 4) + i + call, "element", call);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int again = argc > 1;
  for (int calls = 1; again && calls < 40; calls += 2) exchange_again(calls, calls / 2 % 2);
  if (!again) {
    exchange(MOST);
    exchange(SENT / 2);
  }
  MPI_Finalize();
  return wrong != 0;
}
