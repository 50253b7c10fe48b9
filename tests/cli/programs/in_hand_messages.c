// While a long message is on its way, its sender makes nothing but short collectives, which end in
// the node's memory. Arguments: "blocking", "request" or "test".
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 8 << 20, MESSAGES = 4 };

static void tell(int* done, char form) {
  MPI_Request request;
  if (form == 'b') {
    MPI_Bcast(done, 1, MPI_INT, 1, MPI_COMM_WORLD);
    return;
  }
  MPI_Ibcast(done, 1, MPI_INT, 1, MPI_COMM_WORLD, &request);
  for (int flag = 0; !flag && form == 't';) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char form = argc > 1 ? argv[1][0] : 'r';
  char* const data = calloc(BYTES, 1);
  int wrong = 0;
  for (int i = 1; i <= MESSAGES; ++i) {
    MPI_Request message;
    int done = 0;
    if (rank == 0) {
      memset(data, i, BYTES);
      MPI_Isend(data, BYTES, MPI_CHAR, 1, i, MPI_COMM_WORLD, &message);
      while (!done) tell(&done, form);
      MPI_Wait(&message, MPI_STATUS_IGNORE);
    } else {
      MPI_Irecv(data, BYTES, MPI_CHAR, 0, i, MPI_COMM_WORLD, &message);
      while (!done) {
        MPI_Test(&message, &done, MPI_STATUS_IGNORE);
        tell(&done, form);
      }
      wrong += data[0] != i || data[BYTES - 1] != i;
    }
  }
  if (rank == 1) printf("%s\n", wrong ? "wrong" : "right");
  free(data);
  MPI_Finalize();
  return wrong != 0;
}
