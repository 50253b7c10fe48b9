// gpu_notify: how long a stream's notice takes, and how much of a large allreduce runs beside
// computation. Notice: from the last thing that a kernel does to the return of the MPI_Start that
// posts the collective's first message; this program has an MPI_Start of its own, which takes the
// time. Overlap: of an allreduce through pinned memory and a computation that takes as long.
//   gpu_notify [--turns N] [--bytes B] [--repetitions R] [--blocks N] [--driver FILE]
#include "gpu_notify.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "gpu_device.h"
#include "trials.h"

extern "C" {
extern const unsigned char weft_programs_image[];
extern const bool weft_programs_image_there;
}

namespace {

using Clock = std::chrono::steady_clock;

std::atomic<std::uint64_t> posted{0};
std::atomic<Clock::rep> posted_at{0};

constexpr unsigned kThreads = 256;
constexpr double kNoticeBar_us = 5, kOverlapBar = 0.9;

struct Settings {
  int turns = 200, bytes = 64 << 20, repetitions = 5, blocks = 2048;
  std::string driver = "libcuda.so.1";
};

double microseconds(Clock::rep from, Clock::rep to) {
  return std::chrono::duration<double, std::micro>(Clock::duration(to - from)).count();
}

// The stream has everything before the gate opens, so that no launch is measured.
std::vector<double> notices(const gpu::Device& device, int turns) {
  void* const gate_kernel = device.kernel("notify_gate_kernel");
  const gpu::Stream stream = gpu::new_stream();
  const gpu::Mapped<std::uint64_t> gate(1), passed(1);
  weft_gpu_request barrier = nullptr;
  gpu::weft_good(weft_barrier_init(MPI_COMM_WORLD, &barrier));
  std::vector<double> all;
  for (int turn = 1; turn <= turns + 1; ++turn) {
    const std::uint64_t before = posted.load(), number = static_cast<std::uint64_t>(turn);
    gpu::launch(gate_kernel, 1, 1, stream, gate.device, passed.device, number);
    gpu::weft_good(weft_start_enqueue(barrier, stream));
    gpu::weft_good(weft_wait_enqueue(barrier, stream));
    weft_device_store(gate.host, number);
    while (weft_device_load(passed.host) < number) std::this_thread::yield();
    const Clock::rep seen = Clock::now().time_since_epoch().count();
    while (posted.load() == before) std::this_thread::yield();
    if (turn > 1) all.push_back(std::max(0.0, microseconds(seen, posted_at.load())));
    gpu::synchronise(stream);
  }
  gpu::weft_good(weft_gpu_request_free(&barrier));
  std::sort(all.begin(), all.end());
  return all;
}

class Overlap {
 public:
  Overlap(const gpu::Device& device, const Settings& settings)
      : kernel_(device.kernel("notify_compute_kernel")),
        blocks_(static_cast<unsigned>(settings.blocks)),
        data_(std::vector<float>(static_cast<std::size_t>(settings.bytes) / sizeof(float), 1)),
        out_(static_cast<std::size_t>(blocks_) * kThreads) {
    gpu::weft_good(weft_allreduce_init(MPI_IN_PLACE, data_.data(), static_cast<int>(data_.count()),
                                       MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD, &request_));
  }
  ~Overlap() { weft_gpu_request_free(&request_); }
  Overlap(const Overlap&) = delete;
  Overlap& operator=(const Overlap&) = delete;

  void communicate() {
    gpu::weft_good(weft_start_enqueue(request_, travels_));
    gpu::weft_good(weft_wait_enqueue(request_, travels_));
  }
  void compute() { gpu::launch(kernel_, blocks_, kThreads, computes_, out_.data(), rounds_); }

  double time(bool communicates, bool computes) {
    return gpu::seconds_for_each(1, computes_, [&] {
      if (communicates) communicate();
      if (computes) compute();
      gpu::synchronise(travels_);
    });
  }
  // Until the computation takes as long as the allreduce.
  void calibrate(double wanted_s) {
    time(true, true);
    for (int i = 0; i < 3; ++i) {
      const double scale = std::clamp(wanted_s / time(false, true), 0.01, 100.0);
      rounds_ = std::clamp(static_cast<int>(rounds_ * scale), 1, 1 << 28);
    }
  }
  long wrong() const {
    long count = 0;
    for (const float one : data_.content()) count += one != 1;
    for (const float one : out_.content()) count += !(one > 0 && one < 7);
    return gpu::total(count);
  }
  const char* way() const { return weft_gpu_path_of(request_); }

 private:
  void* const kernel_;
  const unsigned blocks_;
  gpu::Array<float> data_, out_;
  gpu::Stream travels_ = gpu::new_stream(), computes_ = gpu::new_stream();
  weft_gpu_request request_ = nullptr;
  int rounds_ = 1000;
};

const char* word(bool met) {
  return met ? "met" : "missed";
}

int measure(const Settings& settings) {
  const gpu::Device device(weft_programs_image);
  const std::vector<double> took = notices(device, settings.turns);
  const double notice = gpu::slowest(took[took.size() / 2]);
  const double late = gpu::slowest(took[took.size() * 9 / 10]);
  if (gpu::rank == 0) {
    std::printf("%s, %d ranks\n", device.name().c_str(), gpu::ranks);
    std::printf(
        "notice: %.2f us from a kernel's end to the first message, 90 %% below %.2f us; bar %.0f "
        "us: %s\n",
        notice, late, kNoticeBar_us, word(notice <= kNoticeBar_us));
  }
  Overlap overlap(device, settings);
  overlap.time(true, false);
  overlap.calibrate(overlap.time(true, false));
  std::vector<double> shares, alone, computing, both;
  for (int i = 0; i < settings.repetitions; ++i) {
    const double communication = overlap.time(true, false), computation = overlap.time(false, true);
    const double together = overlap.time(true, true);
    alone.push_back(communication * 1e3), computing.push_back(computation * 1e3);
    both.push_back(together * 1e3);
    shares.push_back((communication + computation - together) /
                     std::min(communication, computation));
  }
  const long wrong = overlap.wrong();
  const double share = trials::median(shares);
  if (gpu::rank == 0) {
    std::printf(
        "overlap: %.1f %% of an allreduce of %d bytes (alone %.2f ms, computation %.2f ms, both "
        "%.2f ms); bar %.0f %%: %s\n",
        100 * share, settings.bytes, trials::median(alone), trials::median(computing),
        trials::median(both), 100 * kOverlapBar, word(share >= kOverlapBar));
    std::printf("%ld wrong values; it travels %s\n", wrong, overlap.way());
  }
  return wrong > 0;
}

}  // namespace

// In front of the library's: the agent calls this one.
extern "C" int MPI_Start(MPI_Request* request) {
  static auto* const next = reinterpret_cast<int (*)(MPI_Request*)>(dlsym(RTLD_NEXT, "MPI_Start"));
  const int code = next(request);
  posted_at.store(Clock::now().time_since_epoch().count());
  posted.fetch_add(1);
  return code;
}

int main(int argc, char** argv) {
  gpu::begin(&argc, &argv, "gpu_notify");
  Settings settings;
  trials::Options options;
  options.number("turns", &settings.turns);
  options.number("bytes", &settings.bytes, sizeof(float));
  options.number("repetitions", &settings.repetitions);
  options.number("blocks", &settings.blocks);
  options.text("driver", &settings.driver);
  std::string problem = options.read(argc, argv);
  int status = 2;
  if (problem.empty()) {
    problem = gpu::load_driver(settings.driver, weft_programs_image_there);
    status = problem.empty() ? measure(settings) : gpu::kNoDevice;
  }
  if (!problem.empty()) trials::refuse("gpu_notify", problem);
  MPI_Finalize();
  return status;
}
