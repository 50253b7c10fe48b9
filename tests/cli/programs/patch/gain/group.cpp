// A sum over a communicator that was split off, of vectors.
#include <vector>

#include "work.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm group;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &group);
  std::vector<double> part(N), total(N);
  double answer = 0;
  for (int step = 0; step < STEPS; ++step) {
    fill(part.data(), step);
    MPI_Allreduce(part.data(), total.data(), N, MPI_DOUBLE, MPI_SUM, group);
    answer += busy(step);
    answer += used(total.data());
  }
  MPI_Comm_free(&group);
  return ended(answer);
}
