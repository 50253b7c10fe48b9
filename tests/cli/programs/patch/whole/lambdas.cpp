// Calls in lambdas, lambdas that have a buffer, and objects that were given one.
// EXPECT inside: left: in a function without a name
// EXPECT beside: left: may write update
// EXPECT kept: left: may touch its buffers
// EXPECT free_of_it: changed
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>
#include <vector>

namespace {

constexpr int length = 20000, steps = 15;

double work(int seed) {
  double x = seed;
  for (int i = 0; i < length; ++i) x = 0.5 * x + i % 3;
  return x;
}

class Watch {
 public:
  void look_at(std::vector<double>& field) { field_ = &field; }
  double value() const { return (*field_)[1]; }

 private:
  std::vector<double>* field_ = nullptr;
};

double inside() {
  std::vector<double> part(length, 1), total(length);
  const auto reduce = [&](MPI_Op op) {
    MPI_Allreduce(part.data(), total.data(), length, MPI_DOUBLE, op,
                  MPI_COMM_WORLD);  // CALL inside
    return work(1) + total[1];      // USE inside
  };
  return reduce(MPI_SUM) + reduce(MPI_MAX);
}

double beside() {
  std::vector<double> part(length, 1), total(length);
  const std::function<void(int)> update = [&part](int i) { part[i] += 1; };
  MPI_Allreduce(part.data(), total.data(), length, MPI_DOUBLE, MPI_SUM,
                MPI_COMM_WORLD);  // CALL beside
  update(3);
  return work(2) + total[3];  // USE beside
}

double kept() {
  std::vector<double> part(length, 1), total(length);
  Watch watch;
  watch.look_at(total);
  MPI_Allreduce(part.data(), total.data(), length, MPI_DOUBLE, MPI_SUM,
                MPI_COMM_WORLD);  // CALL kept
  const double sum = watch.value();
  return sum + work(3) + total[2];  // USE kept
}

double free_of_it() {
  std::vector<double> part(length, 1), total(length), other(length, 2);
  MPI_Allreduce(part.data(), total.data(), length, MPI_DOUBLE, MPI_SUM,
                MPI_COMM_WORLD);  // CALL free_of_it
  std::transform(other.begin(), other.end(), other.begin(), [](double x) { return 0.5 * x + 1; });
  const double sum = std::accumulate(other.begin(), other.end(), 0.0);
  return sum + total[4];  // USE free_of_it
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double sum = 0;
  for (int step = 0; step < steps; ++step) sum += inside() + beside() + kept() + free_of_it();
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::printf("%.10g\n", sum);
  return MPI_Finalize();
}
