// A test double of bench/nbceff in which communication and computation are sleeps, to check that
// the benchmark reports the truth. Engine `half` hides exactly half of what could be hidden, in
// real time. Engine `nothing` hides nothing. Engine `stuck` never returns.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "../../bench/sampling.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr double kCommunicationUs = 40000;

void sleep_us(double us) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(us));
}

class Planted : public bench::Communication {
 public:
  explicit Planted(const bench::SamplingOptions& options) : engines_(options.engines) {}
  void prepare(int) override {}
  void blocking() override { sleep_us(kCommunicationUs); }
  void start(std::size_t engine) override {
    engine_ = engines_[engine];
    started_ = Clock::now();
  }
  void wait() override {
    const std::chrono::duration<double, std::micro> computed = Clock::now() - started_;
    if (engine_ == "stuck") pause();
    const double share = engine_ == "half" ? 0.5 : 0.0;
    sleep_us(kCommunicationUs - share * std::min(kCommunicationUs, computed.count()));
  }
  bool correct() const override { return true; }

 private:
  std::vector<std::string> engines_;
  std::string engine_;
  Clock::time_point started_;
};

// Work whose iterations take a microsecond each.
class Sleep : public bench::Work {
 public:
  void run(long iterations) override { sleep_us(static_cast<double>(iterations)); }
  bool correct() const override { return true; }
};

}  // namespace

int main(int argc, char** argv) {
  bench::SamplingOptions options;
  std::string problem;
  if (!bench::parse(argc, argv, &options, &problem)) {
    std::fprintf(stderr, "planted: %s\n", problem.c_str());
    return 2;
  }
  MPI_Init(&argc, &argv);
  Planted communication(options);
  Sleep work;
  const int status = bench::Sampling(options, &communication, &work).run();
  MPI_Finalize();
  return status;
}
