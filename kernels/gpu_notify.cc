// gpu_notify: measures how long a stream takes to start a collective, and how much of a large
// allreduce overlaps with computation. The start is measured from the last instruction of a kernel
// to the return of the MPI_Start that posts the collective's first message; this program defines an
// MPI_Start that records the time. It is measured once more after a gap in which nothing happens,
// when a graph is launched, so that Weft's agent does not expect anything. The overlap is measured
// for an allreduce through pinned memory and a computation that takes as long.
// Usage: gpu_notify [--turns N] [--gap-ms T (0: none)] [--bytes B] [--repetitions R] [--blocks N]
// [--driver FILE]
#include "gpu_notify.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
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
constexpr double kNoticeLimit_us = 5, kLeastOverlap = 0.9;

struct Settings {
  int turns = 200, gap_ms = 10, bytes = 64 << 20, repetitions = 5, blocks = 2048;
  std::string driver = "libcuda.so.1";
};

double microseconds(Clock::rep from, Clock::rep to) {
  return std::chrono::duration<double, std::micro>(Clock::duration(to - from)).count();
}

// Measures starts. All work is in the stream before the kernel ends, so that no launch is measured.
class Notices {
 public:
  Notices(const gpu::Device& device, int turns)
      : turns_(turns), gate_kernel_(device.kernel("notify_gate_kernel")) {
    for (weft_gpu_request* one : {&barrier_, &captured_}) {
      gpu::weft_good(weft_barrier_init(MPI_COMM_WORLD, one));
    }
  }
  ~Notices() {
    for (weft_gpu_request* one : {&barrier_, &captured_}) {
      gpu::weft_good(weft_gpu_request_free(one));
    }
  }
  Notices(const Notices&) = delete;
  Notices& operator=(const Notices&) = delete;

  // Returns the times of starts that directly follow the calls which enqueue them.
  std::vector<double> at_once() {
    return all([this](std::uint64_t number) {
      enqueue(barrier_, number);
      return opened(number);
    });
  }

  // Returns the times of starts after a gap in which nothing happens, by the launch of a graph
  // only.
  std::vector<double> after(std::chrono::milliseconds gap) {
    void *graph = nullptr, *exec = nullptr;
    GPU_GOOD(cuStreamBeginCapture_v2, stream_, gpu::kThreadLocalCapture);
    enqueue(captured_, 1);
    GPU_GOOD(cuStreamEndCapture, stream_, &graph);
    GPU_GOOD(cuGraphInstantiateWithFlags, &exec, graph, 0);
    GPU_GOOD(cuGraphDestroy, graph);
    const std::vector<double> took = all([&](std::uint64_t) {
      *gate_.host = *passed_.host = 0;
      std::this_thread::sleep_for(gap);
      GPU_GOOD(cuGraphLaunch, exec, stream_);
      return opened(1);
    });
    GPU_GOOD(cuGraphExecDestroy, exec);
    return took;
  }

 private:
  // Returns the times of all turns in ascending order, without the first turn.
  template <class Turn>
  std::vector<double> all(const Turn& turn) {
    std::vector<double> times;
    for (int i = 1; i <= turns_ + 1; ++i) {
      const double time = turn(static_cast<std::uint64_t>(i));
      if (i > 1) times.push_back(time);
      gpu::synchronise(stream_);
    }
    std::sort(times.begin(), times.end());
    return times;
  }
  void enqueue(weft_gpu_request request, std::uint64_t number) {
    gpu::launch(gate_kernel_, 1, 1, stream_, gate_.device, passed_.device, number);
    gpu::weft_good(weft_start_enqueue(request, stream_));
    gpu::weft_good(weft_wait_enqueue(request, stream_));
  }
  double opened(std::uint64_t number) {
    const std::uint64_t before = posted.load();
    weft_device_store(gate_.host, number);
    while (weft_device_load(passed_.host) < number) std::this_thread::yield();
    const Clock::rep seen = Clock::now().time_since_epoch().count();
    while (posted.load() == before) std::this_thread::yield();
    return std::max(0.0, microseconds(seen, posted_at.load()));
  }

  const int turns_;
  void* const gate_kernel_;
  const gpu::Stream stream_ = gpu::new_stream();
  const gpu::Mapped<std::uint64_t> gate_{1}, passed_{1};
  weft_gpu_request barrier_ = nullptr, captured_ = nullptr;
};

class Overlap {
 public:
  Overlap(const gpu::Device& device, const Settings& settings)
      : kernel_(device.kernel("notify_compute_kernel")),
        blocks_(static_cast<unsigned>(settings.blocks)),
        data_(std::vector<float>(static_cast<std::size_t>(settings.bytes) / sizeof(float),
                                 static_cast<float>(gpu::rank))),
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
  // Changes the number of rounds until the computation takes `wanted_s`, which is the allreduce's
  // time.
  void calibrate(double wanted_s) {
    time(true, true);
    for (int i = 0; i < 3; ++i) {
      const double scale = std::clamp(wanted_s / time(false, true), 0.01, 100.0);
      rounds_ = std::clamp(static_cast<int>(rounds_ * scale), 1, 1 << 28);
    }
  }
  long wrong() const {
    long count = 0;
    for (const float one : data_.content()) count += one != static_cast<float>(gpu::ranks - 1);
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

void show_notice(const std::string& what, const std::vector<double>& took) {
  const double notice = gpu::slowest(took[took.size() / 2]);
  const double late = gpu::slowest(took[took.size() * 9 / 10]);
  if (gpu::rank != 0) return;
  std::printf(
      "%s: %.2f us from a kernel's end to the first message, 90 %% below %.2f us; limit %.0f us: "
      "%s\n",
      what.c_str(), notice, late, kNoticeLimit_us, word(notice <= kNoticeLimit_us));
}

int measure(const Settings& settings) {
  const gpu::Device device(weft_programs_image);
  if (gpu::rank == 0) std::printf("%s, %d ranks\n", device.name().c_str(), gpu::ranks);
  {
    Notices notices(device, settings.turns);
    show_notice("notice", notices.at_once());
    const std::chrono::milliseconds gap(settings.gap_ms);
    if (settings.gap_ms > 0) {
      show_notice("notice after " + std::to_string(settings.gap_ms) + " ms of nothing",
                  notices.after(gap));
    }
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
        "%.2f ms); limit %.0f %%: %s\n",
        100 * share, settings.bytes, trials::median(alone), trials::median(computing),
        trials::median(both), 100 * kLeastOverlap, word(share >= kLeastOverlap));
    std::printf("%ld wrong values; it travels %s\n", wrong, overlap.way());
  }
  return wrong > 0;
}

}  // namespace

// Records the time of each MPI_Start. It replaces the MPI library's function, and the agent calls
// it.
extern "C" int MPI_Start(MPI_Request* request) {
  static auto* const next = reinterpret_cast<int (*)(MPI_Request*)>(dlsym(RTLD_NEXT, "MPI_Start"));
  const int code = next(request);
  posted_at.store(Clock::now().time_since_epoch().count());
  posted.fetch_add(1);
  return code;
}

int main(int argc, char** argv) {
  // Longer data are to go through pinned memory, unless the user says otherwise.
  setenv("WEFT_GPU_ONE_KERNEL_BYTES", "262144", 0);
  gpu::begin(&argc, &argv, "gpu_notify");
  Settings settings;
  trials::Options options;
  options.number("turns", &settings.turns);
  options.number("gap-ms", &settings.gap_ms, 0);
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
