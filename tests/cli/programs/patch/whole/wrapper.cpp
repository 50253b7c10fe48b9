// A class around a communicator, and templates: a method that returns the result at once, and
// functions that compute before they use it.
// EXPECT method: left: nothing could be computed
// EXPECT generic: changed
// EXPECT mean: changed
// EXPECT owned: left: not local
#include <mpi.h>

#include <cstdio>
#include <vector>

namespace {

constexpr int length = 20000, steps = 15;

template <class T>
MPI_Datatype type_of();
template <>
MPI_Datatype type_of<double>() {
  return MPI_DOUBLE;
}
template <>
MPI_Datatype type_of<float>() {
  return MPI_FLOAT;
}

double work(int seed) {
  double x = seed;
  for (int i = 0; i < length; ++i) x = 0.5 * x + i % 3;
  return x;
}

class Communicator {
 public:
  explicit Communicator(MPI_Comm comm) : comm_(comm) {}
  void sum(const double* from, double* to, int count) const {
    MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, comm_);  // CALL method
  }
  MPI_Comm get() const { return comm_; }

 private:
  MPI_Comm comm_;
};

template <class T>
double generic(const Communicator& comm) {
  std::vector<T> part(length, T(2)), total(length);
  MPI_Allreduce(part.data(), total.data(), length, type_of<T>(), MPI_SUM,  // CALL generic
                comm.get());
  double sum = work(1);
  for (const T one : part) sum += one;
  return sum + total.back();  // USE generic
}

double mean_of(std::vector<double> values, MPI_Comm comm) {
  double own = 0, all = 0;
  for (const double one : values) own += one;
  MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, comm);  // CALL mean
  double least = work(2);
  for (const double one : values) least = one < least ? one : least;
  return all / length + least;  // USE mean
}

class Field {
 public:
  double norm(const Communicator& comm) {
    MPI_Allreduce(own_.data(), all_.data(), length, MPI_DOUBLE, MPI_MAX, comm.get());  // CALL owned
    renew();
    return work(3) + all_[1];  // USE owned
  }

 private:
  void renew() { own_[1] += 1; }
  std::vector<double> own_ = std::vector<double>(length, 1), all_ = own_;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    const Communicator comm(MPI_COMM_WORLD);
    std::vector<double> part(length, 3), total(length);
    Field field;
    double sum = 0;
    for (int step = 0; step < steps; ++step) {
      comm.sum(part.data(), total.data(), length);
      sum += total[step] + generic<double>(comm) + generic<float>(comm);
      sum += mean_of(part, comm.get()) + field.norm(comm);
    }
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) std::printf("%.10g\n", sum);
  }
  return MPI_Finalize();
}
