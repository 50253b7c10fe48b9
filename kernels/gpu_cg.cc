// gpu_cg: solves a 7-point Laplacian on a grid of N x N x N points, whose planes are divided among
// the ranks' GPUs, by pipelined conjugate gradients (gpu_cg.h). Each iteration sums two inner
// products over all ranks, and exchanges the halo of one vector. `default` synchronises device and
// host before each MPI call. `notify` starts both collectives in the stream and waits for them
// there. `graphs` launches iterations as a captured CUDA graph, in which the product inside waits
// for neither. The solution is compared with the known one.
// Usage: gpu_cg [--order N] [--methods M,...] [--repetitions R] [--tolerance T] [--most ITERATIONS]
// [--batch ITERATIONS] [--json FILE] [--driver FILE]
#include "gpu_cg.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gpu_device.h"
#include "trials.h"

extern "C" {
extern const unsigned char weft_cg_image[];
extern const bool weft_cg_image_there;
}

namespace {

using gpu::Array;
using gpu::Stream;
using trials::Words;

constexpr unsigned kThreads = 256, kMostBlocks = 4096;
constexpr double kLargestError = 1e-6;

struct Settings {
  int order = 128, repetitions = 5, most = 2000, batch = 10;
  double tolerance = 1e-10;
  Words methods{"default", "notify", "graphs"};
  std::string driver = "libcuda.so.1", json;
};

// Outcome: the cost of a solution, and its distance from the known one.
struct Outcome {
  int iterations = 0;
  double seconds = 0, error = 0;
};

class Solver {
 public:
  Solver(const gpu::Device& device, const Settings& settings)
      : settings_(settings),
        n_(settings.order),
        first_(static_cast<int>(static_cast<long>(n_) * gpu::rank / gpu::ranks)),
        planes_(static_cast<int>(static_cast<long>(n_) * (gpu::rank + 1) / gpu::ranks) - first_),
        begin_(device.kernel("cg_begin")),
        first_products_(device.kernel("cg_first")),
        inside_(device.kernel("cg_product_inside")),
        edges_(device.kernel("cg_product_edges")),
        add_(device.kernel("cg_add")),
        update_(device.kernel("cg_update")),
        halo_(std::vector<double>(2 * plane())),
        edge_(2 * plane()),
        near_halo_(2 * plane()),
        near_edge_(2 * plane()) {
    for (int i = 0; i < kVectors; ++i) vectors_.push_back(new_vector());
    const int apart = 0, count = static_cast<int>(plane());
    MPI_Cart_create(MPI_COMM_WORLD, 1, &gpu::ranks, &apart, 0, &line_);
    gpu::weft_good(weft_neighbor_alltoall_init(edge_.data(), count, MPI_DOUBLE, halo_.data(), count,
                                               MPI_DOUBLE, line_, &exchange_));
    gpu::weft_good(weft_allreduce_init(MPI_IN_PLACE, sums_.data(), 2, MPI_DOUBLE, MPI_SUM,
                                       MPI_COMM_WORLD, &sum_));
  }
  ~Solver() {
    gpu::synchronise(stream_);
    for (weft_gpu_request* one : {&exchange_, &sum_}) weft_gpu_request_free(one);
    for (const gpu::Address one : vectors_) gpu::cuMemFree_v2(one);
    MPI_Comm_free(&line_);
  }
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  Outcome solve(const std::string& method) {
    Outcome found;
    void* const exec = method == "graphs" ? two_iterations() : nullptr;
    const double target = settings_.tolerance * settings_.tolerance * begin();
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    for (double rr = target + 1; rr > target && found.iterations < settings_.most;) {
      for (int i = 0; i < settings_.batch; ++i, ++found.iterations) {
        if (method == "default") synchronised_iteration(i % 2);
        if (method == "notify") notifying_iteration(i % 2);
        if (exec && i % 2 == 0) GPU_GOOD(cuGraphLaunch, exec, stream_);
      }
      gpu::synchronise(stream_);
      rr = sums_.content()[0].rr;
    }
    found.seconds = gpu::slowest(MPI_Wtime() - began);
    if (exec) GPU_GOOD(cuGraphExecDestroy, exec);
    found.error = error();
    return found;
  }

  std::string paths() const {
    return std::string("sums go ") + weft_gpu_path_of(sum_) + "\nthe halo goes " +
           weft_gpu_path_of(exchange_);
  }

 private:
  static constexpr int kVectors = 7;

  std::size_t plane() const { return static_cast<std::size_t>(n_) * static_cast<std::size_t>(n_); }
  std::size_t points() const { return plane() * static_cast<std::size_t>(planes_); }
  gpu::Address new_vector() const {
    gpu::Address made = 0;
    GPU_GOOD(cuMemAlloc_v2, &made, points() * sizeof(double));
    return made;
  }
  double* vector(int which) const {
    return reinterpret_cast<double*>(vectors_[static_cast<std::size_t>(which)]);
  }

  Cg cg(int odd) const {
    return {vector(0),    vector(1),       vector(2),    vector(3),
            vector(4),    vector(5),       vector(6),    halo_.data(),
            edge_.data(), partial_.data(), sums_.data(), steps_.data(),
            n_,           planes_,         first_,       odd};
  }
  void launch(void* kernel, int odd, Stream stream) const {
    const long blocks = (static_cast<long>(points()) + kThreads - 1) / kThreads;
    gpu::launch(kernel, static_cast<unsigned>(std::clamp<long>(blocks, 1, kMostBlocks)), kThreads,
                stream, cg(odd));
  }
  // Launches a kernel that keeps each thread's part of the inner products.
  void launch_products(void* kernel, int odd) const {
    gpu::launch(kernel, static_cast<unsigned>(kCgParts / kThreads), kThreads, stream_, cg(odd));
  }
  void add(int odd) const { gpu::launch(add_, 1, kCgSumThreads, stream_, cg(odd)); }

  // Begins at x = 0. Returns the square of the norm of the right-hand side.
  double begin() const {
    launch(begin_, 0, stream_);
    gpu::weft_good(weft_run_enqueue(exchange_, stream_));
    launch(inside_, 0, stream_);
    launch(edges_, 0, stream_);
    launch_products(first_products_, 0);
    add(0);
    gpu::synchronise(stream_);
    double rr = sums_.content()[0].rr;
    MPI_Allreduce(MPI_IN_PLACE, &rr, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return rr;
  }

  void synchronised_iteration(int odd) const {
    add(odd);
    gpu::synchronise(stream_);
    CgSums sums = sums_.content()[0];
    MPI_Allreduce(MPI_IN_PLACE, &sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    copy(sums_.address(), &sums, sizeof sums);
    copy(near_edge_.host, edge_.address(), bytes());
    const int count = static_cast<int>(plane());
    MPI_Neighbor_alltoall(near_edge_.host, count, MPI_DOUBLE, near_halo_.host, count, MPI_DOUBLE,
                          line_);
    copy(halo_.address(), near_halo_.host, bytes());
    launch(inside_, odd, stream_);
    launch(edges_, odd, stream_);
    launch_products(update_, odd);
  }

  void notifying_iteration(int odd) const {
    gpu::weft_good(weft_start_enqueue(exchange_, stream_));
    add(odd);
    gpu::weft_good(weft_start_enqueue(sum_, stream_));
    launch(inside_, odd, stream_);
    gpu::weft_good(weft_wait_enqueue(exchange_, stream_));
    launch(edges_, odd, stream_);
    gpu::weft_good(weft_wait_enqueue(sum_, stream_));
    launch_products(update_, odd);
  }

  // Captures two iterations as a graph. The product inside has a branch of its own, beside both
  // collectives.
  void* two_iterations() const {
    void *graph = nullptr, *exec = nullptr;
    GPU_GOOD(cuStreamBeginCapture_v2, stream_, gpu::kThreadLocalCapture);
    for (int odd = 0; odd < 2; ++odd) {
      gpu::join(stream_, beside_, updated_);
      launch(inside_, odd, beside_);
      gpu::weft_good(weft_start_enqueue(exchange_, stream_));
      add(odd);
      gpu::weft_good(weft_start_enqueue(sum_, stream_));
      gpu::weft_good(weft_wait_enqueue(exchange_, stream_));
      launch(edges_, odd, stream_);
      gpu::weft_good(weft_wait_enqueue(sum_, stream_));
      gpu::join(beside_, stream_, inside_done_);
      launch_products(update_, odd);
    }
    GPU_GOOD(cuStreamEndCapture, stream_, &graph);
    GPU_GOOD(cuGraphInstantiateWithFlags, &exec, graph, 0);
    GPU_GOOD(cuGraphDestroy, graph);
    return exec;
  }

  // Returns the largest difference of any rank from the known solution.
  double error() const {
    std::vector<double> found(points());
    copy(found.data(), vectors_[0], points() * sizeof(double));
    const Cg c = cg(0);
    double worst = 0;
    std::size_t i = 0;
    for (int z = first_; z < first_ + planes_; ++z) {
      for (int y = 0; y < n_; ++y) {
        for (int x = 0; x < n_; ++x, ++i) {
          worst = trials::greater(worst, std::abs(found[i] - cg_solution(c, x, y, z)));
        }
      }
    }
    return gpu::slowest(worst);
  }

  std::size_t bytes() const { return 2 * plane() * sizeof(double); }
  static gpu::Address address_of(const void* memory) {
    return reinterpret_cast<gpu::Address>(memory);
  }
  static void copy(gpu::Address to, const void* from, std::size_t bytes) {
    gpu::copy_to_device(to, from, bytes);
  }
  static void copy(void* to, gpu::Address from, std::size_t bytes) {
    GPU_GOOD(cuMemcpy, address_of(to), from, bytes);
  }

  const Settings& settings_;
  const int n_, first_, planes_;
  MPI_Comm line_ = MPI_COMM_NULL;
  const Stream stream_ = gpu::new_stream(), beside_ = gpu::new_stream();
  void *const updated_ = gpu::new_event(), *const inside_done_ = gpu::new_event();
  void *const begin_, *const first_products_, *const inside_, *const edges_, *const add_;
  void* const update_;
  std::vector<gpu::Address> vectors_;  // x, r, w, p, s, z, q
  const Array<double> halo_, edge_;
  const gpu::Mapped<double> near_halo_, near_edge_;
  const Array<CgSums> partial_{kCgParts}, sums_{1};
  const Array<CgSteps> steps_{2};
  weft_gpu_request exchange_ = nullptr, sum_ = nullptr;
};

// Returns whether the solution is right.
bool tell(const std::string& method, const Outcome& last, std::vector<double> times_us) {
  std::sort(times_us.begin(), times_us.end());
  const bool right = last.error < kLargestError;
  if (gpu::rank == 0) {
    std::printf("%-8s %9.2f [%.2f - %.2f]  %d iterations, error %.1e%s\n", method.c_str(),
                times_us[times_us.size() / 2], times_us.front(), times_us.back(), last.iterations,
                last.error, right ? "" : ": WRONG");
  }
  return right;
}

// Writes the times to the JSON file. `default` is named "blocking" there, as in other programs.
void write(const Settings& settings, const std::vector<std::vector<double>>& times_us) {
  if (gpu::rank != 0 || settings.json.empty()) return;
  std::vector<trials::Variant> all;
  for (std::size_t i = 0; i < times_us.size(); ++i) {
    const std::string& method = settings.methods[i];
    all.push_back({.name = method == "default" ? "blocking" : method,
                   .engine = "",
                   .samples_us = times_us[i],
                   .shares = {0}});
  }
  const std::string n = std::to_string(settings.order);
  if (!trials::write_json(settings.json, "gpu_cg", n + " x " + n + " x " + n, all)) {
    gpu::stop("cannot write " + settings.json);
  }
}

int measure(const Settings& settings) {
  const gpu::Device device(weft_cg_image);
  Solver solver(device, settings);
  if (gpu::rank == 0) {
    std::printf("%s, %d ranks, %d x %d x %d; microseconds for an iteration: median [all]\n",
                device.name().c_str(), gpu::ranks, settings.order, settings.order, settings.order);
    std::printf("%s\n", solver.paths().c_str());
  }
  std::vector<std::vector<double>> times_us(settings.methods.size());
  std::vector<Outcome> last(settings.methods.size());
  for (int repetition = 0; repetition <= settings.repetitions; ++repetition) {
    for (std::size_t i = 0; i < settings.methods.size(); ++i) {
      last[i] = solver.solve(settings.methods[i]);
      // The first repetition is a warm-up.
      if (repetition > 0) times_us[i].push_back(1e6 * last[i].seconds / last[i].iterations);
    }
  }
  bool right = true;
  for (std::size_t i = 0; i < times_us.size(); ++i) {
    right = tell(settings.methods[i], last[i], times_us[i]) && right;
  }
  write(settings, times_us);
  if (gpu::rank == 0) std::printf("%s\n", right ? "all solutions right" : "WRONG SOLUTIONS");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  gpu::begin(&argc, &argv, "gpu_cg");
  Settings settings;
  trials::Options options;
  options.number("order", &settings.order, 1, 1024);
  options.number("repetitions", &settings.repetitions);
  options.number("most", &settings.most);
  options.number("batch", &settings.batch, 2);
  options.real("tolerance", &settings.tolerance);
  options.choices("methods", &settings.methods, {"default", "notify", "graphs"});
  options.text("json", &settings.json);
  options.text("driver", &settings.driver);
  std::string problem = options.read(argc, argv);
  if (problem.empty() && settings.batch % 2 != 0) problem = "--batch takes even numbers";
  if (problem.empty() && settings.order < gpu::ranks) problem = "each rank needs a plane";
  int status = 2;
  if (problem.empty()) {
    problem = gpu::load_driver(settings.driver, weft_cg_image_there);
    status = problem.empty() ? measure(settings) : gpu::kNoDevice;
  }
  if (!problem.empty()) trials::refuse("gpu_cg", problem);
  MPI_Finalize();
  return status;
}
