// overlap: measures how much of one collective is hidden behind real computation, and how long a
// short one takes. It is an ordinary MPI program, so the same binary measures with and without
// Weft. All candidates are measured in one run, in a new random order in each repetition, since the
// machine's state drifts. The engine is chosen for each communicator by an info hint, which MPI
// libraries ignore. Times are those of the slowest rank, and medians count (Hoefler, Lumsdaine,
// Rehm, SC07; docs/benchmarking.md).
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "kernel.h"
#include "operation.h"
#include "options.h"
#include "report.h"

namespace bench {
namespace {

constexpr int kWarmUps = 3;

// Candidate: something to measure, and the times that it took on the slowest rank.
struct Candidate {
  std::function<void()> run;
  bool communicates = true;
  std::vector<double> samples_us = {};
};

class Measurement {
 public:
  explicit Measurement(const Options& options);
  ~Measurement();
  Figures take();

 private:
  void add_communication();
  void add_computation();
  void calibrate();
  double once(const Candidate& candidate);
  void repeat(int repetitions, bool keep);
  void start_and_wait(MPI_Comm comm, bool compute);
  void batch(MPI_Comm comm);
  Figures figures() const;

  Options options_;
  int rank_ = 0, size_ = 1, salt_ = 0;
  long iterations_ = 1, checks_ = 0, wrong_ = 0;
  MPI_Comm control_ = MPI_COMM_NULL;  // for barriers and maxima between measurements
  MPI_Comm plain_ = MPI_COMM_NULL;    // without a hint, for the blocking collective
  std::vector<MPI_Comm> comms_;       // one per engine
  Kernel kernel_;
  bool kernel_right_ = true;
  Operation operation_;
  std::mt19937 order_;
  // Blocking collective, non-blocking one for each engine, computation alone, and overlapped ones.
  std::vector<Candidate> candidates_;
};

int rank_of(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

int size_of(MPI_Comm comm) {
  int size = 1;
  MPI_Comm_size(comm, &size);
  return size;
}

Measurement::Measurement(const Options& options)
    : options_(options),
      rank_(rank_of(MPI_COMM_WORLD)),
      size_(size_of(MPI_COMM_WORLD)),
      operation_(options.collective, options.bytes, rank_, size_),
      order_(options.seed) {
  if (options.iterations) iterations_ = options.iterations;
  MPI_Comm_dup(MPI_COMM_WORLD, &control_);
  MPI_Comm_dup(MPI_COMM_WORLD, &plain_);
  for (const auto& engine : options.engines) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "weft_engine", engine.c_str());
    comms_.emplace_back();
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comms_.back());
    MPI_Info_free(&info);
  }
}

Measurement::~Measurement() {
  for (auto& comm : comms_) MPI_Comm_free(&comm);
  MPI_Comm_free(&plain_);
  MPI_Comm_free(&control_);
}

void Measurement::start_and_wait(MPI_Comm comm, bool compute) {
  MPI_Request request;
  operation_.start(comm, &request);
  if (compute) kernel_right_ = kernel_.run(iterations_) && kernel_right_;
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void Measurement::batch(MPI_Comm comm) {
  for (int i = 0; i < options_.batch; ++i) {
    if (comm == plain_) {
      operation_.blocking(comm);
    } else {
      start_and_wait(comm, false);
    }
  }
}

void Measurement::add_communication() {
  const bool latency = options_.latency;
  candidates_.push_back({[=, this] { latency ? batch(plain_) : operation_.blocking(plain_); }});
  for (MPI_Comm comm : comms_) {
    candidates_.push_back({[=, this] { latency ? batch(comm) : start_and_wait(comm, false); }});
  }
}

void Measurement::add_computation() {
  candidates_.push_back(
      {[this] { kernel_right_ = kernel_.run(iterations_) && kernel_right_; }, false});
  for (MPI_Comm comm : comms_) {
    candidates_.push_back({[=, this] { start_and_wait(comm, true); }});
  }
}

// Runs a candidate once. The pause before it lets the token bucket of a traffic shaper refill, so
// that all candidates find it equally full.
double Measurement::once(const Candidate& candidate) {
  operation_.prepare(++salt_ % 97);
  kernel_right_ = true;
  if (options_.pause_us) std::this_thread::sleep_for(std::chrono::microseconds(options_.pause_us));
  MPI_Barrier(control_);
  const double begin = MPI_Wtime();
  candidate.run();
  const double mine_us = (MPI_Wtime() - begin) * 1e6;
  const bool right = kernel_right_ && (!candidate.communicates || operation_.correct());
  double in[2] = {mine_us, right ? 0.0 : 1.0}, out[2];
  MPI_Allreduce(in, out, 2, MPI_DOUBLE, MPI_MAX, control_);
  ++checks_;
  if (out[1] > 0) ++wrong_;
  return options_.latency ? out[0] / options_.batch : out[0];
}

void Measurement::repeat(int repetitions, bool keep) {
  std::vector<std::size_t> order(candidates_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[order_() % i]);
    for (const std::size_t which : order) {
      const double time_us = once(candidates_[which]);
      if (keep) candidates_[which].samples_us.push_back(time_us);
    }
  }
}

// Finds how many iterations of the computation take `ratio` times as long as the fastest
// candidate's communication. All ranks compute at the same time, as in the measurements.
void Measurement::calibrate() {
  repeat(kWarmUps, true);
  double communication_us = 1e300;
  for (auto& candidate : candidates_) {
    communication_us = std::min(communication_us, statistic(candidate.samples_us).median);
    candidate.samples_us.clear();
  }
  const Candidate work{[this] { kernel_right_ = kernel_.run(iterations_); }, false};
  const double target_us = options_.ratio * communication_us;
  double time_us = once(work);
  for (iterations_ = 1; time_us < std::min(target_us, 20000.0) / 2; time_us = once(work)) {
    iterations_ *= 2;
  }
  for (int round = 0; round < 2; ++round) {
    std::vector<double> times_us;
    for (int i = 0; i < 5; ++i) times_us.push_back(once(work));
    const double scale = target_us / statistic(times_us).median;
    iterations_ = std::max(1L, static_cast<long>(static_cast<double>(iterations_) * scale + 0.5));
  }
}

Figures Measurement::take() {
  add_communication();
  repeat(1, false);
  if (options_.latency) {
    repeat(kWarmUps, false);
  } else {
    if (!options_.iterations) calibrate();
    add_computation();
    repeat(1, false);
  }
  repeat(options_.repetitions, true);
  return figures();
}

Figures Measurement::figures() const {
  Figures result;
  result.options = options_;
  result.ranks = size_;
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  result.mpi = std::string(version, std::strcspn(version, "\n"));
  std::replace(result.mpi.begin(), result.mpi.end(), '\t', ' ');
  if (const auto name = dlsym(RTLD_DEFAULT, "weft_version")) {
    result.weft = reinterpret_cast<const char* (*)()>(name)();
  }
  result.iterations = iterations_;
  result.checks = checks_;
  result.wrong = wrong_;
  const std::size_t engines = comms_.size();
  result.blocking_us = statistic(candidates_[0].samples_us);
  if (!options_.latency) result.computation_us = statistic(candidates_[1 + engines].samples_us);
  for (std::size_t i = 0; i < engines; ++i) {
    EngineFigures& engine = result.engines.emplace_back();
    engine.engine = options_.engines[i];
    engine.immediate_us = statistic(candidates_[1 + i].samples_us);
    if (!options_.latency) engine.total_us = statistic(candidates_[2 + engines + i].samples_us);
  }
  return result;
}

int measure(const Options& options) {
  const Figures figures = Measurement(options).take();
  if (rank_of(MPI_COMM_WORLD) != 0) return figures.wrong ? 1 : 0;
  print(figures);
  if (!options.json.empty() && !write_json(figures, options.json)) {
    std::fprintf(stderr, "overlap: cannot write %s\n", options.json.c_str());
    return 1;
  }
  return figures.wrong ? 1 : 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  std::string problem;
  const auto options = bench::parse(argc, argv, &problem);
  if (!options) {
    std::fprintf(stderr, "overlap: %s\n%s", problem.c_str(), bench::usage());
    return 2;
  }
  MPI_Init(&argc, &argv);
  const int status = bench::measure(*options);
  MPI_Finalize();
  return status;
}
