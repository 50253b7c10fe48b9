// Functions with a collective each. "CALL name" marks its line, "USE name" the first use measured.
#include <mpi.h>

#include <cstdio>
#include <vector>

namespace {

#ifndef N
#define N 64
#define TIMES 1
#endif
constexpr int n = N;

double busy(int count) {
  double x = 1;
  for (int i = 0; i < count; ++i) x = 0.5 * x + 1 / (x + i);
  return x;
}

std::vector<double> filled(int seed) {
  std::vector<double> x(n);
  for (int i = 0; i < n; ++i) x[i] = seed + i;
  return x;
}

double vectors() {
  std::vector<double> part = filled(1), total(n);
  MPI_Allreduce(part.data(), total.data(), n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);  // CALL vectors
  double sum = busy(20);
  for (int i = 0; i < n; ++i) sum += part[i] * 2;
  return sum + total[0];  // USE vectors
}

double reference() {
  std::vector<double> part = filled(1), total(n);
  auto& result = total;
  MPI_Allreduce(part.data(), total.data(), n, MPI_DOUBLE, MPI_SUM,
                MPI_COMM_WORLD);  // CALL reference
  double sum = result[0] + busy(20);
  return sum + total[0];  // USE reference
}

double lambda() {
  std::vector<double> part = filled(1), total(n);
  const auto first = [&] { return total[0]; };
  MPI_Allreduce(part.data(), total.data(), n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);  // CALL lambda
  double sum = busy(20) + first();
  return sum + total[0];  // USE lambda
}

double exception() {
  std::vector<double> part = filled(1), total(n);
  double sum = 0;
  try {
    MPI_Allreduce(part.data(), total.data(), n, MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);  // CALL exception
    sum = busy(20);
    sum += total[0];  // USE exception
  } catch (...) {
    return 0;
  }
  return sum;
}

double grown() {
  std::vector<double> part = filled(1), total(n);
  MPI_Allreduce(part.data(), total.data(), n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);  // CALL grown
  part.push_back(busy(3));
  return part.back() + total[0];  // USE grown
}

class Solver {
 public:
  double own() {
    MPI_Allreduce(part_.data(), total_.data(), n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);  // CALL own
    double sum = busy(20);
    return sum + total_[0];  // USE own
  }
  double by_method() {
    MPI_Allreduce(part_.data(), this->total_.data(), n, MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);  // CALL by_method
    double sum = first();
    return sum + total_[0];  // USE by_method
  }

 private:
  double first() const { return total_[0]; }
  std::vector<double> part_ = filled(1), total_ = filled(2);
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Solver solver;
  std::vector<double> answers;
  for (int time = 0; time < TIMES; ++time) {
    answers = {vectors(), reference(),  lambda(),          exception(),
               grown(),   solver.own(), solver.by_method()};
  }
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (const double one : answers) {
    if (rank == 0) std::printf("%.12g\n", one);
  }
  MPI_Finalize();
}
