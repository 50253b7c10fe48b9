// Exceptions: a function that throws while a caller goes on, one that never does, and a block that
// catches.
// EXPECT thrown: left: may leave this place
// EXPECT after: changed
// EXPECT caught: left: an exception may pass by the wait
#include <mpi.h>

#include <cstdio>
#include <stdexcept>
#include <vector>

namespace {

constexpr int length = 20000, steps = 15;

double work(int seed) {
  double x = seed;
  for (int i = 0; i < length; ++i) x = 0.5 * x + i % 3;
  return x;
}

void check(double x, int step) {
  if (step % 4 == 1) throw std::runtime_error("diverged");
  if (x < 0) throw std::range_error("negative");
}

double checked_work(int step) {
  const double x = work(step);
  check(x, step);
  return x;
}

double thrown(int step) {
  std::vector<double> part(length, 1), total(length);
  MPI_Allreduce(part.data(), total.data(), length, MPI_DOUBLE, MPI_SUM,
                MPI_COMM_WORLD);  // CALL thrown
  double sum = checked_work(step);
  sum += work(1);
  return sum + total[1];  // USE thrown
}

double after(int step) {
  std::vector<double> part(length, 1), total(length);
  MPI_Allreduce(part.data(), total.data(), length, MPI_DOUBLE, MPI_SUM,
                MPI_COMM_WORLD);  // CALL after
  double sum = work(2);
  sum += checked_work(step);
  return sum + total[2];  // USE after
}

double caught(int step) {
  std::vector<double> part(length, 1), total(length);
  double sum = 0;
  try {
    MPI_Allreduce(part.data(), total.data(), length, MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);  // CALL caught
    sum = checked_work(step);
    sum += total[3];  // USE caught
  } catch (const std::exception&) {
    sum -= 1;
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double sum = 0;
  for (int step = 0; step < steps; ++step) {
    for (const auto function : {thrown, after, caught}) {
      try {
        sum += function(step);
      } catch (const std::runtime_error&) {
        sum += 1;
      }
    }
  }
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::printf("%.10g\n", sum);
  return MPI_Finalize();
}
