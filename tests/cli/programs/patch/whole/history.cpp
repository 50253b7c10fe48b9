// A loop whose result is used in the next round, one whose call can be planned, and one whose
// vectors are swapped or grow.
// EXPECT lagged: changed
// EXPECT planned: changed
// EXPECT swapped: changed
// EXPECT grown: left: may write
#include <mpi.h>

#include <cstdio>
#include <vector>

namespace {

constexpr int length = 20000, steps = 15;

double work(int seed) {
  double x = seed;
  for (int i = 0; i < length; ++i) x = 0.5 * x + i % 3;
  return x;
}

double lagged() {
  std::vector<double> part(length, 1), total(length);
  double sum = 0;
  for (int step = 0; step < steps; ++step) {
    if (step > 0) {
      sum += total[step];  // USE lagged
    }
    for (double& one : part) one += step;
    MPI_Allreduce(part.data(), total.data(), length, MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);  // CALL lagged
    sum += work(step);
  }
  return sum;
}

double planned() {
  std::vector<double> first(length, 1), second(length);
  double *part = first.data(), *total = second.data(), sum = 0;
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < length; ++i) part[i] += step;
    MPI_Allreduce(part, total, length, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);  // CALL planned
    sum += work(step);
    sum += total[step];  // USE planned
  }
  return sum;
}

double swapped() {
  std::vector<double> part(length, 1), next(length, 2), total(length);
  double sum = 0;
  for (int step = 0; step < steps; ++step) {
    MPI_Allreduce(part.data(), total.data(), length, MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);  // CALL swapped
    sum += work(step);
    part.swap(next);
    sum += total[step];  // USE swapped
  }
  return sum;
}

double grown() {
  std::vector<double> part(length, 1), total(length);
  double sum = 0;
  for (int step = 0; step < steps; ++step) {
    MPI_Allreduce(part.data(), total.data(), length, MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);  // CALL grown
    part.push_back(step);
    sum += work(step) + total[step];  // USE grown
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const double sum = lagged() + planned() + swapped() + grown();
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::printf("%.10g\n", sum);
  return MPI_Finalize();
}
