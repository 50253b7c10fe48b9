// Usage: levels LEVEL-OF-RANK-0 LEVEL-OF-OTHERS [hint|blocking]. It makes one large MPI_Iallreduce
// with these thread levels. hint: it is made on a second communicator with the hint
// weft_engine=thread. blocking: an MPI_Allreduce follows.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 32 * 1024 };

static int level_of(const char* name) {
  return strcmp(name, "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
}

// Returns this process's rank as the launcher's environment tells it before MPI_Init.
static int rank_by_launcher(void) {
  const char* rank = getenv("PMI_RANK");
  return rank ? atoi(rank) : 0;
}

static MPI_Comm with_hint(void) {
  MPI_Comm comm, another;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "weft_engine", "thread");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &another);
  MPI_Comm_free(&another);
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
  MPI_Info_free(&info);
  return comm;
}

static int sum_is_right(MPI_Comm comm) {
  static double in[COUNT], out[COUNT];
  int size, right = 1;
  MPI_Request request;
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < COUNT; ++i) in[i] = i;
  MPI_Iallreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < COUNT; ++i) right = right && out[i] == (double)size * i;
  return right;
}

int main(int argc, char** argv) {
  const int asked = level_of(argv[rank_by_launcher() == 0 ? 1 : 2]);
  int granted;
  MPI_Comm comm = MPI_COMM_WORLD;
  const int hint = argc > 3 && strcmp(argv[3], "hint") == 0;
  MPI_Init_thread(&argc, &argv, asked, &granted);
  if (hint) comm = with_hint();
  printf("granted %s, sum %s\n", granted == asked ? "as asked" : "more than asked",
         sum_is_right(comm) ? "right" : "wrong");
  if (argc > 3 && !hint) MPI_Allreduce(&hint, &granted, 1, MPI_INT, MPI_SUM, comm);
  if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
