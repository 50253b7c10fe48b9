// steps: a small model of an application. Each step starts one collective, computes a fixed amount
// and waits; or, in blocking form, calls the collective and computes. The time of all steps
// together counts, so it includes whatever an engine takes from the computation or tries out. The
// program prints "seconds us-per-step" of the slowest rank. With `--work 0` it also prints how long
// a thousand iterations of the computation take.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "options.h"

namespace {

struct Steps {
  std::string name = "allreduce";
  bench::Collective collective = bench::Collective::allreduce;
  long bytes = 1 << 20;
  long steps = 100;
  long work = 0;  // iterations of the computation in each step
  bool blocking = false;
};

const char kUsage[] =
    "steps [--collective allreduce] [--bytes 1MiB] [--steps 100] [--work ITERATIONS]\n"
    "      [--blocking 0|1]\n";

std::optional<Steps> parse(int argc, char** argv) {
  Steps found;
  for (int i = 1; i < argc; i += 2) {
    const std::string word = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    const auto number = bench::number(value, 0, 1e12);
    if (word == "--collective") {
      const auto collective = bench::find_collective(value);
      if (!collective) return std::nullopt;
      found.collective = *collective;
    } else if (word == "--bytes") {
      const auto bytes = bench::size_in_bytes(value);
      if (!bytes) return std::nullopt;
      found.bytes = *bytes;
    } else if (!number) {
      return std::nullopt;
    } else if (word == "--steps") {
      found.steps = static_cast<long>(*number);
    } else if (word == "--work") {
      found.work = static_cast<long>(*number);
    } else if (word == "--blocking") {
      found.blocking = *number != 0;
    } else {
      return std::nullopt;
    }
  }
  return found;
}

// Computes a chain of dependent operations, whose time does not depend on what the caches hold.
double compute(long iterations, double seed) {
  double x = seed;
  for (long i = 0; i < iterations; ++i) x = x * 0.999999 + 0.000001;
  return x;
}

double seconds_of(const Steps& steps, bench::Operation& operation) {
  volatile double kept = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  for (long step = 0; step < steps.steps; ++step) {
    if (steps.blocking) {
      operation.blocking(MPI_COMM_WORLD);
      kept = compute(steps.work, static_cast<double>(step));
    } else {
      MPI_Request request;
      operation.start(MPI_COMM_WORLD, &request);
      kept = compute(steps.work, static_cast<double>(step));
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  }
  double own = MPI_Wtime() - began, slowest = 0;
  MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  static_cast<void>(kept);
  return slowest;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto steps = parse(argc, argv);
  if (!steps || steps->steps < 1) {
    if (rank == 0) std::fprintf(stderr, "%s", kUsage);
    MPI_Finalize();
    return 2;
  }
  bench::Operation operation(steps->collective, steps->bytes, rank, ranks);
  operation.prepare(1);
  const double seconds = seconds_of(*steps, operation);
  const bool right = operation.correct();
  if (!right) std::fprintf(stderr, "steps: rank %d has a wrong result\n", rank);
  if (rank == 0)
    std::printf("%.6f %.3f\n", seconds, seconds / static_cast<double>(steps->steps) * 1e6);
  if (rank == 0 && steps->work == 0) {
    constexpr long kIterations = 10'000'000;
    const double began = MPI_Wtime();
    volatile double kept = compute(kIterations, MPI_Wtime());
    static_cast<void>(kept);
    std::printf("%.6f\n", (MPI_Wtime() - began) / kIterations * 1e9);
  }
  MPI_Finalize();
  return right ? 0 : 1;
}
