/* Persistent allgathers on buffers that other ranks may read directly. Rank 0 starts, then waits
 * in the library for messages that the other ranks send when their request is complete. Rank 0
 * prints "right". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64 * 1024 };

int main(int argc, char** argv) {
  int rank, ranks, level, token = 0, wrong = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  char *own, *all;
  MPI_Alloc_mem(MOST, MPI_INFO_NULL, &own);
  MPI_Alloc_mem((MPI_Aint)ranks * MOST, MPI_INFO_NULL, &all);
  for (int bytes = 16 * 1024; bytes <= MOST; bytes *= 2) {
    MPI_Request request;
    MPI_Allgather_init(own, bytes, MPI_CHAR, all, bytes, MPI_CHAR, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request);
    for (int start = 0; start < 3; ++start) {
      for (int i = 0; i < bytes; ++i) own[i] = (char)(rank + start + i);
      MPI_Start(&request);
      for (int from = 1; rank == 0 && from < ranks; ++from)
        MPI_Recv(&token, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (rank > 0) MPI_Send(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
      for (int from = 0; from < ranks; ++from)
        for (int i = 0; i < bytes; ++i)
          if (all[(size_t)from * bytes + i] != (char)(from + start + i)) wrong = 1;
    }
    MPI_Request_free(&request);
  }
  if (wrong) MPI_Abort(MPI_COMM_WORLD, 1);
  if (rank == 0) printf("right\n");
  MPI_Free_mem(own);
  MPI_Free_mem(all);
  MPI_Finalize();
  return 0;
}
