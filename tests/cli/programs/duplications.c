/* Usage: duplications ROUNDS DEPTH. In each round rank 0 starts DEPTH MPI_Iallreduce, one
 * MPI_Comm_idup (or MPI_Comm_idup_with_info in every other round) and DEPTH more MPI_Iallreduce.
 * Only then it tells the other ranks to start theirs. Each new communicator must have the
 * attributes and the error handler that the old one had at the call. The new communicators are
 * used, and results are checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 512, MOST = 40 };

static int wrong = 0, keyval, ranks;

static void check(int right, const char* what) {
  if (!right && !wrong++) printf("wrong: %s\n", what);
}

static void check_copy(MPI_Comm copy, int* value) {
  int found, one = 1, sum = 0, flag = 0, *attribute;
  MPI_Errhandler handler;
  MPI_Request request;
  MPI_Comm_get_attr(copy, keyval, &attribute, &found);
  check(found && attribute == value, "an attribute");
  MPI_Comm_get_errhandler(copy, &handler);
  check(handler == MPI_ERRORS_RETURN, "an error handler");
  MPI_Errhandler_free(&handler);
  MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, copy, &request);
  while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  check(sum == ranks, "a sum on a copy");
  MPI_Comm_free(&copy);
}

int main(int argc, char** argv) {
  static int own[2 * MOST][COUNT], sum[2 * MOST][COUNT];
  const int rounds = argc > 1 ? atoi(argv[1]) : 20, depth = argc > 2 ? atoi(argv[2]) : 10;
  MPI_Request requests[2 * MOST + 1];
  MPI_Comm comm;
  int rank, value = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
  MPI_Comm_set_attr(comm, keyval, &value);
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (rank > 0) MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2 * depth; ++i) {
      for (int k = 0; k < COUNT; ++k) own[i][k] = rank + round + i + k;
      if (i == depth && round % 2 == 0) MPI_Comm_idup(comm, &copy, &requests[2 * depth]);
      if (i == depth && round % 2 == 1) {
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "round", "odd");
        MPI_Comm_idup_with_info(comm, info, &copy, &requests[2 * depth]);
        MPI_Info_free(&info);
      }
      MPI_Iallreduce(own[i], sum[i], COUNT, MPI_INT, MPI_SUM, comm, &requests[i]);
    }
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    for (int to = 1; rank == 0 && to < ranks; ++to)
      MPI_Send(NULL, 0, MPI_INT, to, 0, MPI_COMM_WORLD);
    MPI_Waitall(2 * depth + 1, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2 * depth; ++i)
      for (int k = 0; k < COUNT; ++k)
        check(sum[i][k] == ranks * (ranks - 1) / 2 + ranks * (round + i + k), "a sum");
    check_copy(copy, &value);
  }
  MPI_Comm_free_keyval(&keyval);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return wrong != 0;
}
