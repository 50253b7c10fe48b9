// messages: how much of a halo's exchange, or of one MPI_Iallreduce, hides behind computation, and
// what the other threads of the process take of the processor meanwhile. Why not overlap: that
// measures collectives by engine. An ordinary MPI program; it measures communication alone and
// beside computation, in turns.
// messages halo|allreduce BYTES REPETITIONS [RATIO]: prints JSON, times of the slowest rank.
// Computation takes RATIO times communication's time (1.2), by the clock: what the wait still takes
// is then communication's, also where others use the cores.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

namespace {

int rank = 0, size = 1;
bool reduces = false;
std::vector<double> outgoing, incoming;
double waited_s = 0, other_cpu_s = 0;  // of the last exchange, on this rank
volatile double sink = 0;

double clock_s(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

double cpu_s_of_other_threads() {
  return clock_s(CLOCK_PROCESS_CPUTIME_ID) - clock_s(CLOCK_THREAD_CPUTIME_ID);
}

void compute(double seconds) {
  const double until = clock_s(CLOCK_MONOTONIC) + seconds;
  double x = rank;
  while (clock_s(CLOCK_MONOTONIC) < until)
    for (int i = 0; i < 1000; ++i) x = x * 0.999 + 1;
  sink = x;
}

// With the neighbours in a ring, as of a halo.
void exchange(double seconds_of_computation) {
  const int count = static_cast<int>(outgoing.size());
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  const double cpu_before = cpu_s_of_other_threads();
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  if (reduces) {
    MPI_Iallreduce(outgoing.data(), incoming.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                   &requests[0]);
  } else {
    MPI_Irecv(incoming.data(), count, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(outgoing.data(), count, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &requests[1]);
  }
  compute(seconds_of_computation);
  const double waits_from = MPI_Wtime();
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  waited_s = MPI_Wtime() - waits_from;
  other_cpu_s = cpu_s_of_other_threads() - cpu_before;
}

double of_slowest(double own) {
  double slowest = 0;
  MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

double seconds_of_exchange(double seconds_of_computation) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  exchange(seconds_of_computation);
  return of_slowest(MPI_Wtime() - begin);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print(const char* name, const std::vector<double>& values, const char* end) {
  std::printf("\"%s\":[", name);
  for (std::size_t i = 0; i < values.size(); ++i) std::printf("%s%.6f", i ? "," : "", values[i]);
  std::printf("]%s", end);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 4) {
    if (rank == 0)
      std::fprintf(stderr, "usage: messages halo|allreduce BYTES REPETITIONS [RATIO]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  reduces = std::strcmp(argv[1], "allreduce") == 0;
  const int repetitions = std::atoi(argv[3]);
  const double ratio = argc > 4 ? std::atof(argv[4]) : 1.2;
  outgoing.assign(static_cast<std::size_t>(std::atol(argv[2])) / sizeof(double), rank);
  incoming.resize(outgoing.size());
  std::vector<double> alone, both, waited, hidden, other_cpu;
  for (int i = 0; i < 3; ++i) seconds_of_exchange(0);
  for (int i = 0; i < repetitions; ++i) {
    alone.push_back(seconds_of_exchange(0));
    both.push_back(seconds_of_exchange(ratio * median(alone)));
    waited.push_back(of_slowest(waited_s));
    other_cpu.push_back(of_slowest(other_cpu_s));
    hidden.push_back(1 - waited.back() / median(alone));
  }
  if (rank == 0) {
    std::printf("{\"bytes\":%zu,\"ranks\":%d,\"ratio\":%g,", outgoing.size() * sizeof(double), size,
                ratio);
    print("alone_s", alone, ",");
    print("both_s", both, ",");
    print("waited_s", waited, ",");
    print("other_cpu_s", other_cpu, ",");
    print("hidden", hidden, "}\n");
  }
  MPI_Finalize();
  return 0;
}
