/* Buffers that functions of another file use: one that is given them, and one that was given them
 * before and writes what is sent.
 * FILE two_files.field.c
 * EXPECT given: changed
 * EXPECT kept: left: may touch its buffers
 * EXPECT returned: left: may touch its buffers
 * EXPECT by_root: left: other ranks make the same call
 * EXPECT by_others: left: other ranks make the same call
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "two_files.field.h"

void refresh(int step);

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double *part = malloc(length * sizeof *part), *total = calloc(length, sizeof *total), sum = 0;
  double *source = malloc(length * sizeof *source), *field = current();
  for (int i = 0; i < length; ++i) part[i] = source[i] = rank + i % 7;
  attach(source);
  for (int step = 0; step < 15; ++step) {
    MPI_Allreduce(part, total, length, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL given */
    sum += work(step);
    sum += sum_of(total);

    MPI_Allreduce(source, total, length, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* CALL kept */
    refresh(step);
    sum += work(1);
    sum += total[step]; /* USE kept */

    MPI_Bcast(field, length, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* CALL returned */
    current()[step] = 1;
    sum += work(2) + field[step]; /* USE returned */

    if (rank == 0) {
      MPI_Bcast(part, length, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* CALL by_root MEETS by_others */
      sum += work(3);
    } else {
      MPI_Bcast(total, length, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* CALL by_others MEETS by_root */
      sum += work(3);
    }
  }
  if (rank == 0) printf("%.10g %.10g\n", sum, source[1]);
  free(part);
  free(total);
  free(source);
  return MPI_Finalize();
}
