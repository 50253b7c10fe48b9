// Usage: many_requests KEPT ROUNDS [RANK fsize|nofile]. In each round it initialises KEPT
// persistent allreduces of 512 KiB, starts them all (on even ranks in reverse order) and frees
// them. If RANK is given, the operating system first refuses further files to this rank.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { DOUBLES = 64 * 1024 };

static void refuse_files(const char* what) {
  const int resource = strcmp(what, "fsize") == 0 ? RLIMIT_FSIZE : RLIMIT_NOFILE;
  struct rlimit limit;
  getrlimit(resource, &limit);
  limit.rlim_cur = 0;
  setrlimit(resource, &limit);
}

static int wrong(const double* out, int ranks, int request, int round) {
  for (int i = 0; i < DOUBLES; ++i)
    if (out[i] != ranks * (request + round + i % 7)) return 1;
  return 0;
}

int main(int argc, char** argv) {
  const int kept = atoi(argv[1]), rounds = atoi(argv[2]);
  int rank, ranks, failures = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  double* in = malloc(sizeof *in * DOUBLES * kept);
  double* out = malloc(sizeof *out * DOUBLES * kept);
  MPI_Request* requests = malloc(sizeof *requests * kept);
  MPI_Barrier(MPI_COMM_WORLD);
  if (argc == 5 && rank == atoi(argv[3])) refuse_files(argv[4]);
  for (int round = 0; round < rounds; ++round) {
    for (int r = 0; r < kept; ++r) {
      for (int i = 0; i < DOUBLES; ++i) in[r * DOUBLES + i] = r + round + i % 7;
      MPI_Allreduce_init(in + r * DOUBLES, out + r * DOUBLES, DOUBLES, MPI_DOUBLE, MPI_SUM,
                         MPI_COMM_WORLD, MPI_INFO_NULL, &requests[r]);
    }
    for (int r = 0; r < kept; ++r) MPI_Start(&requests[rank % 2 ? r : kept - 1 - r]);
    MPI_Waitall(kept, requests, MPI_STATUSES_IGNORE);
    for (int r = 0; r < kept; ++r) failures += wrong(out + r * DOUBLES, ranks, r, round);
    for (int r = 0; r < kept; ++r) MPI_Request_free(&requests[r]);
  }
  if (failures) printf("rank %d: %d wrong\n", rank, failures);
  free(in);
  free(out);
  free(requests);
  MPI_Finalize();
  return failures ? 1 : 0;
}
