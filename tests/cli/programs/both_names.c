// Calls MPI functions by their MPI_ names three times and by their PMPI_ names twice, as a Fortran
// layer or a tool does. The exit status is 1 if a sum is wrong.
#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ranks, wrong = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < 5; ++i) {
    int one = 1 + i, sum = 0;
    MPI_Request request;
    if (i < 3) {
      MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      PMPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
      PMPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    wrong += sum != ranks * (1 + i);
  }
  MPI_Finalize();
  return wrong != 0;
}
