// gpu_fft3d: a three-dimensional Fourier transform on GPUs, of an N x N x N grid in slabs, forward
// and backward. Each slab is divided into blocks: while cuFFT transforms one, the previous one is
// exchanged by an alltoall in the stream (weft_start_enqueue). Project jh250041 found that
// transposes take far longer than transforms, which limits what overlap can gain. The table has the
// ratio of communication to computation, which repeated transforms (--work) make smaller, and what
// overlap gains; below it stands the ratio up to which overlap pays.
// Usage: gpu_fft3d [--order N] [--blocks B] [--work W,W,...] [--repetitions R] [--driver FILE]
// [--fft FILE]
#include "gpu_fft3d.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <map>
#include <memory>

#include "crossing.h"
#include "gpu_device.h"
#include "trials.h"

extern "C" {
extern const unsigned char weft_programs_image[];
extern const bool weft_programs_image_there;
}

namespace {

using gpu::Stream;
using Complex = std::complex<double>;
using Points = gpu::Array<FftComplex>;

constexpr double kTolerance = 1e-10;
constexpr int kForward = -1, kBackward = 1, kDouble = 0x69;  // kDouble has the value of CUFFT_Z2Z
// Greatest order for which the result is compared with the definition.
constexpr int kMostChecked = 16;
constexpr unsigned kThreads = 256, kMostBlocks = 4096;

struct Settings {
  int order = 256, blocks = 4, repetitions = 5;
  trials::Words work{"1", "2", "4", "8", "16", "32"};
  std::string driver = "libcuda.so.1", fft = "libcufft.so";
};

int (*plan_many)(int*, int, int*, int*, int, int, int*, int, int, int, int);
int (*set_stream)(int, Stream);
int (*execute)(int, FftComplex*, FftComplex*, int);

std::string load_fft(const std::string& path) {
  void* found = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  for (const char* version : {".12", ".11", ".10"}) {
    if (!found) found = dlopen((path + version).c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  plan_many = reinterpret_cast<decltype(plan_many)>(gpu::symbol_of(found, "cufftPlanMany"));
  set_stream = reinterpret_cast<decltype(set_stream)>(gpu::symbol_of(found, "cufftSetStream"));
  execute = reinterpret_cast<decltype(execute)>(gpu::symbol_of(found, "cufftExecZ2Z"));
  return plan_many && set_stream && execute ? "" : "there is no cuFFT here: name its file by --fft";
}

// A cuFFT plan for many neighbouring arrays of n^dimensions points.
class Plan {
 public:
  Plan(int dimensions, int n, int batch, Stream stream) {
    int extents[] = {n, n};
    const int distance = dimensions == 2 ? n * n : n;
    gpu::good(plan_many(&handle_, dimensions, extents, nullptr, 1, distance, nullptr, 1, distance,
                        kDouble, batch),
              "cufftPlanMany");
    gpu::good(set_stream(handle_, stream), "cufftSetStream");
  }
  void carry_out(FftComplex* data, int sign) const {
    gpu::good(execute(handle_, data, data, sign), "cufftExecZ2Z");
  }

 private:
  int handle_ = 0;
};

double initial(int x, int y, int z) {
  return (x * 31 + y * 17 + z * 7) % 23 - 11.0;
}

// Each rank has `own_` planes: [x][y][z] in space, [y][z][x] in the spectrum.
class Transform {
 public:
  Transform(const gpu::Device& device, const Settings& settings)
      : n_(settings.order),
        own_(n_ / gpu::ranks),
        blocks_(settings.blocks),
        rows_(own_ / blocks_),
        pack_(device.kernel("fft_pack_kernel")),
        place_(device.kernel("fft_place_kernel")),
        planes_(2, n_, rows_, computes_),
        lines_(1, n_, rows_ * n_, computes_),
        initial_(points()),
        space_(points()),
        spectrum_(points()),
        packed_(points()),
        received_(points()) {
    const int to_each = static_cast<int>(block_points() / gpu::ranks) * 2;
    for (int block = 0; block < blocks_; ++block) {
      weft_gpu_request made = nullptr;
      gpu::weft_good(weft_alltoall_init(part(packed_, block), to_each, MPI_DOUBLE,
                                        part(received_, block), to_each, MPI_DOUBLE, MPI_COMM_WORLD,
                                        &made));
      exchanges_.push_back(made);
      packed_now_.push_back(gpu::new_event()), arrived_.push_back(gpu::new_event());
    }
    fill();
  }
  ~Transform() {
    for (weft_gpu_request& one : exchanges_) weft_gpu_request_free(&one);
    gpu::synchronise(travels_);
  }
  Transform(const Transform&) = delete;
  Transform& operator=(const Transform&) = delete;

  void fill() {
    std::vector<FftComplex> values;
    for (int x = first(); x < first() + own_; ++x) {
      for (int y = 0; y < n_; ++y) {
        for (int z = 0; z < n_; ++z) values.push_back({initial(x, y, z), 0});
      }
    }
    space_.set(values), initial_.set(values);
    // Old values are overwritten, so that they are not mistaken for those of the next exchange.
    for (Points* points : {&spectrum_, &received_})
      points->set(std::vector<FftComplex>(points->count(), {NAN, NAN}));
  }

  enum What { kAll = 3, kComputes = 1, kTravels = 2 };

  // Computes the forward transform. overlapped: whether a block is exchanged while the next one is
  // transformed. work: how often each transform is made. what: whether to compute, to communicate
  // or both.
  void forward(bool overlapped, int work, What what = kAll) {
    for (int block = 0; block < blocks_; ++block) {
      if (what & kComputes) {
        FftComplex* const planes = part(space_, block);
        for (int i = 0; i < work; ++i) planes_.carry_out(planes, i % 2 ? kBackward : kForward);
        launch(pack_, FftPack{planes, part(packed_, block), rows_, gpu::ranks, own_, n_});
      }
      if (what & kTravels) travel(block, overlapped);
    }
    for (int block = 0; block < blocks_; ++block) {
      if ((what & kTravels) && overlapped) arrive(block);
      if (!(what & kComputes)) continue;
      // The received data are ordered by sender, and then by x in its block, this rank's y, and z.
      launch(place_, FftPlace{part(received_, block), spectrum_.data() + block * rows_, gpu::ranks,
                              rows_, own_, n_, own_, 1, static_cast<long>(n_) * n_, n_});
    }
    for (int block = 0; block < blocks_ && what & kComputes; ++block) {
      FftComplex* const lines = part(spectrum_, block);
      for (int i = 0; i < work; ++i) lines_.carry_out(lines, i % 2 ? kBackward : kForward);
    }
  }

  void backward(bool overlapped) {
    for (int block = 0; block < blocks_; ++block) {
      FftComplex* const lines = part(spectrum_, block);
      lines_.carry_out(lines, kBackward);
      // From [y][z][x], each rank gets the x of its planes.
      launch(pack_, FftPack{lines, part(packed_, block), static_cast<long>(rows_) * n_, gpu::ranks,
                            own_, 1});
      travel(block, overlapped);
    }
    for (int block = 0; block < blocks_; ++block) {
      if (overlapped) arrive(block);
      // The received data are ordered by sender, and then by y in its block, z, and this rank's x.
      launch(place_, FftPlace{part(received_, block), space_.data() + long{block} * rows_ * n_,
                              gpu::ranks, rows_, n_, own_, static_cast<long>(own_) * n_, n_, 1,
                              static_cast<long>(n_) * n_});
    }
    for (int block = 0; block < blocks_; ++block) planes_.carry_out(part(space_, block), kBackward);
  }

  double time(bool overlapped, int work, What what = kAll) {
    GPU_GOOD(cuMemcpyAsync, space_.address(), initial_.address(), points() * sizeof(FftComplex),
             computes_);
    return gpu::seconds_for_each(1, computes_, [&] {
      forward(overlapped, work, what);
      gpu::synchronise(travels_);
    });
  }

  // Returns the largest difference between any rank's spectrum and the definition. The definition's
  // sums are computed axis by axis.
  double error_of_spectrum() {
    const std::vector<FftComplex> found = spectrum();
    const auto n = static_cast<std::size_t>(n_);
    std::vector<Complex> right(n * n * n);
    for (std::size_t i = 0; i < right.size(); ++i) {
      right[i] = initial(static_cast<int>(i / (n * n)), static_cast<int>(i / n % n),
                         static_cast<int>(i % n));
    }
    for (const std::size_t stride : {std::size_t(1), n, n * n}) by_definition(&right, stride);
    double worst = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t y = i / (n * n) + static_cast<std::size_t>(first());
      const std::size_t z = i / n % n, x = i % n;
      const Complex value(found[i].re, found[i].im);
      worst = trials::greater(worst, std::abs(value - right[(x * n + y) * n + z]));
    }
    return gpu::slowest(worst) / static_cast<double>(right.size());
  }
  double error_of_space() {
    gpu::synchronise(computes_);
    const std::vector<FftComplex> found = space_.content();
    const double scale = std::pow(n_, 3);
    double worst = 0;
    std::size_t i = 0;
    for (int x = first(); x < first() + own_; ++x) {
      for (int y = 0; y < n_; ++y) {
        for (int z = 0; z < n_; ++z, ++i) {
          worst = trials::greater(worst, std::abs(found[i].re / scale - initial(x, y, z)) +
                                             std::abs(found[i].im / scale));
        }
      }
    }
    return gpu::slowest(worst);
  }

 private:
  int first() const { return gpu::rank * own_; }
  std::size_t points() const {
    return static_cast<std::size_t>(own_) * static_cast<std::size_t>(n_) *
           static_cast<std::size_t>(n_);
  }
  long block_points() const { return static_cast<long>(rows_) * n_ * n_; }
  FftComplex* part(const Points& of, int block) const { return of.data() + block * block_points(); }
  std::vector<FftComplex> spectrum() {
    gpu::synchronise(computes_);
    return spectrum_.content();
  }

  template <class Parameters>
  void launch(void* kernel, Parameters parameters) {
    const long blocks = (block_points() + kThreads - 1) / kThreads;
    gpu::launch(kernel, static_cast<unsigned>(std::clamp<long>(blocks, 1, kMostBlocks)), kThreads,
                computes_, parameters);
  }

  // Exchanges a block in a stream of its own. If not overlapped, the other stream waits for it.
  void travel(int block, bool overlapped) {
    const auto which = static_cast<std::size_t>(block);
    gpu::join(computes_, travels_, packed_now_[which]);
    gpu::weft_good(weft_start_enqueue(exchanges_[which], travels_));
    if (overlapped) return;
    gpu::weft_good(weft_wait_enqueue(exchanges_[which], travels_));
    gpu::join(travels_, computes_, arrived_[which]);
  }
  void arrive(int block) {
    const auto which = static_cast<std::size_t>(block);
    gpu::weft_good(weft_wait_enqueue(exchanges_[which], travels_));
    gpu::join(travels_, computes_, arrived_[which]);
  }

  void by_definition(std::vector<Complex>* data, std::size_t stride) const {
    const auto n = static_cast<std::size_t>(n_);
    std::vector<Complex> line(n);
    for (std::size_t start = 0; start < data->size(); ++start) {
      if (start / stride % n != 0) continue;
      for (std::size_t k = 0; k < n; ++k) {
        line[k] = 0;
        for (std::size_t i = 0; i < n; ++i) {
          const double angle = -2 * M_PI * static_cast<double>(i * k % n) / static_cast<double>(n);
          line[k] += (*data)[start + i * stride] * std::polar(1.0, angle);
        }
      }
      for (std::size_t k = 0; k < n; ++k) (*data)[start + k * stride] = line[k];
    }
  }

  const int n_, own_, blocks_, rows_;
  void *const pack_, *const place_;
  const Stream computes_ = gpu::new_stream(), travels_ = gpu::new_stream();
  const Plan planes_, lines_;
  Points initial_, space_, spectrum_, packed_, received_;
  std::vector<weft_gpu_request> exchanges_;
  std::vector<void*> packed_now_, arrived_;
};

// Checks the transform, overlapped and not, forward and backward. Returns false if a result is
// wrong.
bool is_right(Transform* transform, const Settings& settings) {
  bool right = true;
  for (const bool overlapped : {false, true}) {
    transform->fill();
    transform->forward(overlapped, 1);
    double forward = 0;
    if (settings.order <= kMostChecked) forward = transform->error_of_spectrum();
    transform->backward(overlapped);
    const double back = transform->error_of_space();
    right = right && forward < kTolerance && back < kTolerance;
    if (gpu::rank == 0) {
      std::printf("%s: error backward %.1e", overlapped ? "overlapped" : "blocking", back);
      if (settings.order <= kMostChecked) {
        std::printf(", forward %.1e (from the definition)\n", forward);
      } else {
        std::printf("; forward is compared with the definition for orders up to %d\n",
                    kMostChecked);
      }
    }
  }
  return right;
}

double median_of(const Settings& settings, const std::function<double()>& run) {
  run();
  std::vector<double> all;
  for (int i = 0; i < settings.repetitions; ++i) all.push_back(run());
  return trials::median(all);
}

int measure(const Settings& settings) {
  const gpu::Device device(weft_programs_image);
  Transform transform(device, settings);
  const bool right = is_right(&transform, settings);
  if (gpu::rank == 0) {
    std::printf("%s, %d ranks, %d x %d x %d, %d blocks; milliseconds for a forward transform\n",
                device.name().c_str(), gpu::ranks, settings.order, settings.order, settings.order,
                settings.blocks);
    std::printf("%5s %11s %13s %6s %10s %10s %6s\n", "work", "computation", "communication",
                "ratio", "blocking", "overlapped", "won");
  }
  const double travels =
      median_of(settings, [&] { return transform.time(false, 1, Transform::kTravels); });
  std::map<double, double> won_at;  // gain by overlap at each ratio
  for (const std::string& word : settings.work) {
    const int work = std::stoi(word);
    const auto timed = [&](bool overlapped, Transform::What what) {
      return median_of(settings, [&] { return transform.time(overlapped, work, what); });
    };
    const double computes = timed(false, Transform::kComputes);
    const double blocking = timed(false, Transform::kAll),
                 overlapped = timed(true, Transform::kAll);
    const double ratio = travels / computes, won = 1 - overlapped / blocking;
    won_at[ratio] = won;
    if (gpu::rank == 0) {
      std::printf("%5d %11.3f %13.3f %6.2f %10.3f %10.3f %5.1f%%\n", work, computes * 1e3,
                  travels * 1e3, ratio, blocking * 1e3, overlapped * 1e3, 100 * won);
    }
  }
  if (gpu::rank == 0) crossing::tell(won_at);
  if (gpu::rank == 0) std::printf("%s\n", right ? "all answers right" : "WRONG ANSWERS");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  gpu::begin(&argc, &argv, "gpu_fft3d");
  Settings settings;
  trials::Options options;
  options.number("order", &settings.order, 1, 2048);
  options.number("blocks", &settings.blocks);
  options.number("repetitions", &settings.repetitions);
  options.words("work", &settings.work);
  options.text("driver", &settings.driver);
  options.text("fft", &settings.fft);
  std::string problem = options.read(argc, argv);
  for (const std::string& word : settings.work) {
    if (problem.empty() && std::atoi(word.c_str()) < 1) problem = "--work takes numbers from 1 on";
  }
  if (problem.empty() && settings.order % (gpu::ranks * settings.blocks) != 0) {
    problem = "the order must be a multiple of ranks times blocks";
  }
  int status = 2;
  if (problem.empty()) {
    problem = gpu::load_driver(settings.driver, weft_programs_image_there);
    if (problem.empty()) problem = load_fft(settings.fft);
    status = problem.empty() ? measure(settings) : gpu::kNoDevice;
  }
  if (!problem.empty()) trials::refuse("gpu_fft3d", problem);
  MPI_Finalize();
  return status;
}
