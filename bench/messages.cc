// messages: measures how much of a halo exchange, or of an MPI_Iallreduce, is hidden behind
// computation, and how much processor time the process's other threads take meanwhile. It is an
// ordinary MPI program, and alternates between communication alone and communication with
// computation.
// Usage: messages halo|put|get|allreduce BYTES REPETITIONS [RATIO [sleep]]. put and get exchange
// the halo by one-sided calls between two fences. The computation takes RATIO times as long as the
// communication (default 1.2), by the clock: the time beyond that is the exposed part of the
// communication, which includes the calls that start it, and the time in which other threads use
// the cores. sleep: the caller sleeps instead of computing, so that the other threads have the core
// to themselves. It prints JSON with the times of the slowest rank.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

int rank = 0, size = 1;
std::string what;
bool sleeps = false;
MPI_Win window = MPI_WIN_NULL;  // window over `incoming` for puts, over `outgoing` for gets
std::vector<double> outgoing, incoming;
// Results of the last exchange on this rank: the time not hidden by computation, and the processor
// time and the context switches of the process's other threads.
double exposed_s = 0, other_cpu_s = 0, other_switches = 0;
volatile double sink = 0;

double clock_s(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

double cpu_s_of_other_threads() {
  return clock_s(CLOCK_PROCESS_CPUTIME_ID) - clock_s(CLOCK_THREAD_CPUTIME_ID);
}

// Returns the voluntary context switches of the process's other threads. Each is a system call in
// which the thread slept.
double switches_of_other_threads() {
  long sum = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(getpid())) continue;
    std::ifstream status(task.path() / "status");
    long switches = 0;
    for (std::string line; std::getline(status, line);)
      if (std::sscanf(line.c_str(), "voluntary_ctxt_switches: %ld", &switches) == 1)
        sum += switches;
  }
  return static_cast<double>(sum);
}

void compute(double seconds) {
  if (sleeps) {
    usleep(static_cast<useconds_t>(1e6 * seconds));
    return;
  }
  const double until = clock_s(CLOCK_MONOTONIC) + seconds;
  double x = rank;
  while (clock_s(CLOCK_MONOTONIC) < until)
    for (int i = 0; i < 1000; ++i) x = x * 0.999 + 1;
  sink = x;
}

// Starts an exchange with the neighbours in a ring, as for a halo, or the allreduce.
void start_exchange(MPI_Request* requests) {
  const int count = static_cast<int>(outgoing.size());
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  if (what == "allreduce") {
    MPI_Iallreduce(outgoing.data(), incoming.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                   &requests[0]);
  } else if (what == "put") {
    MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
    MPI_Put(outgoing.data(), count, MPI_DOUBLE, right, 0, count, MPI_DOUBLE, window);
  } else if (what == "get") {
    MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
    MPI_Get(incoming.data(), count, MPI_DOUBLE, left, 0, count, MPI_DOUBLE, window);
  } else {
    MPI_Irecv(incoming.data(), count, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(outgoing.data(), count, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &requests[1]);
  }
}

void exchange(double seconds_of_computation) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  start_exchange(requests);
  compute(seconds_of_computation);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  if (window != MPI_WIN_NULL) MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
}

double of_slowest(double own) {
  double slowest = 0;
  MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

double seconds_of_exchange(double seconds_of_computation) {
  const double cpu_before = cpu_s_of_other_threads(), switches = switches_of_other_threads();
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  exchange(seconds_of_computation);
  const double took = MPI_Wtime() - begin;
  exposed_s = took - seconds_of_computation;
  other_cpu_s = cpu_s_of_other_threads() - cpu_before;
  other_switches = switches_of_other_threads() - switches;
  return of_slowest(took);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print(const char* name, const std::vector<double>& values, const char* end) {
  std::printf("\"%s\":[", name);
  for (std::size_t i = 0; i < values.size(); ++i) std::printf("%s%.9f", i ? "," : "", values[i]);
  std::printf("]%s", end);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 4) {
    if (rank == 0)
      std::fprintf(stderr,
                   "usage: messages halo|put|get|allreduce BYTES REPETITIONS [RATIO [sleep]]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  what = argv[1];
  const int repetitions = std::atoi(argv[3]);
  const double ratio = argc > 4 ? std::atof(argv[4]) : 1.2;
  sleeps = argc > 5 && std::strcmp(argv[5], "sleep") == 0;
  outgoing.assign(static_cast<std::size_t>(std::atol(argv[2])) / sizeof(double), rank);
  incoming.resize(outgoing.size());
  if (what == "put" || what == "get") {
    std::vector<double>& open = what == "put" ? incoming : outgoing;
    MPI_Win_create(open.data(), static_cast<MPI_Aint>(open.size() * sizeof(double)), sizeof(double),
                   MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  }
  std::vector<double> alone, both, exposed, hidden, other_cpu, switches;
  for (int i = 0; i < 3; ++i) seconds_of_exchange(0);
  for (int i = 0; i < repetitions; ++i) {
    alone.push_back(seconds_of_exchange(0));
    both.push_back(seconds_of_exchange(ratio * median(alone)));
    exposed.push_back(of_slowest(exposed_s));
    other_cpu.push_back(of_slowest(other_cpu_s));
    switches.push_back(of_slowest(other_switches));
    hidden.push_back(1 - exposed.back() / median(alone));
  }
  if (rank == 0) {
    std::printf("{\"bytes\":%zu,\"ranks\":%d,\"ratio\":%g,", outgoing.size() * sizeof(double), size,
                ratio);
    print("alone_s", alone, ",");
    print("both_s", both, ",");
    print("exposed_s", exposed, ",");
    print("other_cpu_s", other_cpu, ",");
    print("other_switches", switches, ",");
    print("hidden", hidden, "}\n");
  }
  if (window != MPI_WIN_NULL) MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
