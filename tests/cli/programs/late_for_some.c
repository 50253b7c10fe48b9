/* Collectives that Weft handles, and some on a communicator that it leaves to the MPI library.
 * For the latter, rank 1 is late each time. The time for which rank 0 waits for them must not
 * count in the hidden share that Weft reports. */
#include <mpi.h>
#include <unistd.h>

enum { COUNT = 65536, ROUNDS = 10 };

static double in[COUNT], out[COUNT];

static void add_up(MPI_Comm comm) {
  MPI_Request request;
  MPI_Iallreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Info info;
  MPI_Comm librarys;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Info_create(&info);
  MPI_Info_set(info, "weft_engine", "native");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &librarys);
  MPI_Info_free(&info);
  for (int round = 0; round < ROUNDS; ++round) {
    add_up(MPI_COMM_WORLD);
    if (rank == 1) usleep(50000);
    add_up(librarys);
  }
  MPI_Comm_free(&librarys);
  MPI_Finalize();
  return 0;
}
