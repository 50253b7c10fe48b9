// Makes each kind of call that Weft carries out or passes on to the MPI library once: persistent,
// large count, one rank, nothing to move, with a hint, blocking. The exit status is 1 if a result
// is wrong.
#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, right = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int mine = rank + 1, sum = 0;
  const int expected = size * (size + 1) / 2;
  MPI_Request request;

  MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int i = 0; i < 3; ++i) {
    sum = 0;
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    right = right && sum == expected;
  }
  MPI_Request_free(&request);

  sum = 0;
  MPI_Iallreduce_c(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  right = right && sum == expected;

  MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  right = right && sum == mine;

  MPI_Iallreduce(&mine, &sum, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  right = right && sum == mine;

  MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  right = right && sum == expected;

  MPI_Info info;
  MPI_Comm hinted;
  MPI_Info_create(&info);
  MPI_Info_set(info, "weft_engine", "native");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &hinted);
  MPI_Iexscan(&mine, &sum, 1, MPI_INT, MPI_SUM, hinted, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  right = right && (rank == 0 || sum == rank * (rank + 1) / 2);
  MPI_Info_set(info, "weft_engine", "function");
  MPI_Info_set(info, "weft_algorithm", "scan=chain,allreduce=quick");
  MPI_Comm_set_info(hinted, info);
  MPI_Iscan(&mine, &sum, 1, MPI_INT, MPI_SUM, hinted, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  right = right && sum == (rank + 1) * (rank + 2) / 2;
  MPI_Comm_free(&hinted);
  MPI_Info_free(&info);

  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  right = right && sum == expected;

  MPI_Finalize();
  return right ? 0 : 1;
}
