// gpu_allreduce: adds doubles over the ranks' GPUs in several ways: in one kernel
// (weft_run_enqueue), through pinned memory, by an allgather and cuBLAS's product of a matrix with
// a vector of ones, and by NCCL if each rank has a GPU of its own. For comparison it measures an
// empty kernel and a copy of the same bytes on the device (the limit for one kernel is twice that
// time), and the reduction alone, of as many rows as there are ranks, on the device and on the
// host. It checks every result.
// Usage: gpu_allreduce [--bytes A,B,...] [--turns N] [--driver FILE] [--blas FILE] [--cpu-blas
// FILE,...] [--nccl FILE]
#include <algorithm>
#include <cmath>

#include "gpu_nccl.h"
#include "trials.h"

extern "C" {
extern const unsigned char weft_programs_image[];
extern const bool weft_programs_image_there;
}

namespace {

using gpu::Stream;
using Doubles = gpu::Array<double>;

constexpr double kLimit = 2;
constexpr std::size_t kMostJudged = 256 << 10;

struct Settings {
  trials::Words bytes{"8", "512", "4096", "32768", "262144", "1048576"};
  int turns = 200;
  std::string driver = "libcuda.so.1", blas = "libcublas.so", nccl = "libnccl.so.2";
  // Libraries to try; the first one that can be loaded is used.
  trials::Words cpu_blas{"libopenblas.so.0", "libblas.so.3"};
};

void* library(const std::string& path) {
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

// cuBLAS, if it can be loaded: computes y = A x for a matrix in column order.
class Blas {
 public:
  explicit Blas(const std::string& path) {
    void* found = library(path);
    for (const char* version : {".13", ".12", ".11"}) {
      if (!found) found = library(path + version);
    }
    create_ = function<int(void**)>(found, "cublasCreate_v2");
    set_stream_ = function<int(void*, Stream)>(found, "cublasSetStream_v2");
    gemv_ = function<Gemv>(found, "cublasDgemv_v2");
    if (create_ && set_stream_ && gemv_) gpu::good(create_(&handle_), "cublasCreate");
  }
  bool is_there() const { return handle_ != nullptr; }
  void use(Stream stream) { gpu::good(set_stream_(handle_, stream), "cublasSetStream"); }
  void product(int rows, int columns, const double* matrix, const double* x, double* y) const {
    const double one = 1, zero = 0;
    gpu::good(gemv_(handle_, 0, rows, columns, &one, matrix, rows, x, 1, &zero, y, 1),
              "cublasDgemv");
  }

 private:
  using Gemv = int(void*, int, int, int, const double*, const double*, int, const double*, int,
                   const double*, double*, int);
  template <class F>
  static F* function(void* from, const char* name) {
    return reinterpret_cast<F*>(gpu::symbol_of(from, name));
  }
  int (*create_)(void**) = nullptr;
  int (*set_stream_)(void*, Stream) = nullptr;
  Gemv* gemv_ = nullptr;
  void* handle_ = nullptr;
};

// A BLAS library for the host, if one can be loaded.
struct CpuBlas {
  using Gemv = void(int, int, int, int, double, const double*, int, const double*, int, double,
                    double*, int);

  explicit CpuBlas(const trials::Words& files) {
    for (const std::string& one : files) {
      if (gemv) return;
      file = one;
      gemv = reinterpret_cast<Gemv*>(gpu::symbol_of(library(one), "cblas_dgemv"));
    }
  }
  void product(int rows, int columns, const double* matrix, const double* x, double* y) const {
    constexpr int kByColumns = 102, kAsItIs = 111;
    gemv(kByColumns, kAsItIs, rows, columns, 1, matrix, rows, x, 1, 0, y, 1);
  }

  std::string file;
  Gemv* gemv = nullptr;
};

double value_of(int rank, std::size_t i) {
  return static_cast<double>(i % 97) + 1000 * rank;
}

std::vector<double> contribution(int rank, std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(rank, i);
  return values;
}

std::vector<double> sum_of_all(std::size_t count) {
  std::vector<double> sum(count);
  for (int one = 0; one < gpu::ranks; ++one) {
    for (std::size_t i = 0; i < count; ++i) sum[i] += value_of(one, i);
  }
  return sum;
}

long differences(const std::vector<double>& found, const std::vector<double>& right) {
  long count = 0;
  for (std::size_t i = 0; i < right.size(); ++i) count += found[i] != right[i];
  return count;
}

class Program {
 public:
  explicit Program(const Settings& settings)
      : settings_(settings),
        device_(weft_programs_image),
        nothing_(device_.kernel("program_nothing")),
        blas_(settings.blas),
        cpu_blas_(settings.cpu_blas),
        cpu_multiplies_(gpu::total(!cpu_blas_.gemv) == 0),
        nccl_(settings.nccl, device_.is_alone()) {
    if (blas_.is_there()) blas_.use(stream_);
  }

  int run() {
    if (gpu::rank == 0) {
      std::printf("%s, %d ranks; microseconds for a sum of doubles over the ranks\n",
                  device_.name().c_str(), gpu::ranks);
      std::printf("%9s %10s %10s %10s %10s %12s %10s %10s\n", "bytes", "kernel", "in a graph",
                  "launch+copy", "staged", "gemv", "nccl", "kernel/(launch+copy)");
    }
    for (const std::string& word : settings_.bytes) row(std::stoul(word) / sizeof(double));
    if (gpu::rank == 0) {
      std::printf("\nmicroseconds for the sum of %d rows alone\n", gpu::ranks);
      std::printf("%9s %10s %10s %12s %12s\n", "bytes", "kernel", "gemv", "cpu loop", "cpu gemv");
    }
    for (const std::string& word : settings_.bytes) rows_alone(std::stoul(word) / sizeof(double));
    if (gpu::rank == 0) {
      if (cpu_multiplies_) std::printf("cpu gemv: %s\n", cpu_blas_.file.c_str());
      std::printf("one kernel: %s\n", way_.c_str());
      if (judged_ > 0) {
        std::printf("one kernel: limit %.0f x (launch + copy): %s\n", kLimit,
                    met_ ? "met" : "missed");
      }
      std::printf("%ld wrong values\n", wrong_);
    }
    return wrong_ > 0;
  }

 private:
  template <class Body>
  double microseconds(const Body& body) {
    for (int i = 0; i < 3; ++i) body();
    return 1e6 * gpu::seconds_for_each(settings_.turns, stream_, body);
  }
  void check(const Doubles& found, const std::vector<double>& right) {
    wrong_ += gpu::total(differences(found.content(), right));
  }

  // Clears a result, so that it is not mistaken for that of the next way.
  static void clear(Doubles& data) { data.set(std::vector<double>(data.count())); }

  void* captured(weft_gpu_request request, int times) {
    void *graph = nullptr, *exec = nullptr;
    GPU_GOOD(cuStreamBeginCapture_v2, stream_, gpu::kThreadLocalCapture);
    for (int i = 0; i < times; ++i) gpu::weft_good(weft_run_enqueue(request, stream_));
    GPU_GOOD(cuStreamEndCapture, stream_, &graph);
    GPU_GOOD(cuGraphInstantiateWithFlags, &exec, graph, 0);
    GPU_GOOD(cuGraphDestroy, graph);
    return exec;
  }

  void row(std::size_t count) {
    const std::size_t bytes = count * sizeof(double);
    const int n = static_cast<int>(count);
    const std::vector<double> right = sum_of_all(count);
    const Doubles from(contribution(gpu::rank, count));
    Doubles to(count);
    const Doubles gathered(count * static_cast<std::size_t>(gpu::ranks));
    const Doubles ones(std::vector<double>(static_cast<std::size_t>(gpu::ranks), 1));
    weft_gpu_request sum = nullptr, gather = nullptr;
    gpu::weft_good(
        weft_allreduce_init(from.data(), to.data(), n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &sum));
    const std::string way = weft_gpu_path_of(sum);
    if (way_.empty() || bytes <= kMostJudged) way_ = way;
    const bool in_one_kernel = way.rfind("in one kernel", 0) == 0;

    double kernel = 0, in_graph = 0, nccl = 0, gemv = 0;
    if (in_one_kernel) {
      kernel = microseconds([&] { gpu::weft_good(weft_run_enqueue(sum, stream_)); });
      check(to, right);
      constexpr int kRuns = 10;
      void* const exec = captured(sum, kRuns);
      clear(to);
      in_graph = microseconds([&] { GPU_GOOD(cuGraphLaunch, exec, stream_); }) / kRuns;
      check(to, right);
      GPU_GOOD(cuGraphExecDestroy, exec);
    }
    const double copy = microseconds([&] {
      gpu::launch(nothing_, 1, 1, stream_);
      GPU_GOOD(cuMemcpyAsync, to.address(), from.address(), bytes, stream_);
    });
    const double staged = microseconds([&] {
      weft_gpu_request one = nullptr;
      gpu::weft_good(weft_iallreduce_enqueue(from.data(), to.data(), n, MPI_DOUBLE, MPI_SUM,
                                             MPI_COMM_WORLD, stream_, &one));
      gpu::weft_good(weft_wait_enqueue(one, stream_));
      gpu::weft_good(weft_gpu_request_free(&one));
    });
    check(to, right);
    if (blas_.is_there()) {
      gpu::weft_good(weft_allgather_init(from.data(), n, MPI_DOUBLE, gathered.data(), n, MPI_DOUBLE,
                                         MPI_COMM_WORLD, &gather));
      clear(to);
      gemv = microseconds([&] {
        gpu::weft_good(weft_run_enqueue(gather, stream_));
        blas_.product(n, gpu::ranks, gathered.data(), ones.data(), to.data());
      });
      check(to, right);
      gpu::weft_good(weft_gpu_request_free(&gather));
    }
    if (nccl_.is_there()) {
      clear(to);
      nccl = microseconds([&] { nccl_.sum(from.data(), to.data(), count, stream_); });
      check(to, right);
    }
    gpu::weft_good(weft_gpu_request_free(&sum));
    gpu::synchronise(stream_);
    if (in_one_kernel && bytes <= kMostJudged) {
      ++judged_;
      met_ = met_ && kernel <= kLimit * copy;
    }
    if (gpu::rank != 0) return;
    std::printf("%9zu %s %s %10.2f %10.2f %s %s %s\n", bytes, cell(kernel).c_str(),
                cell(in_graph).c_str(), copy, staged, cell(gemv).c_str(), cell(nccl).c_str(),
                cell(kernel / copy).c_str());
    std::fflush(stdout);
  }

  // Measures only the reduction: the matrix, with a column for each rank, is already on this
  // device.
  void rows_alone(std::size_t count) {
    const std::size_t columns = static_cast<std::size_t>(gpu::ranks);
    const int n = static_cast<int>(count), rows = gpu::ranks;
    std::vector<double> matrix;
    for (int one = 0; one < gpu::ranks; ++one) {
      const std::vector<double> column = contribution(one, count);
      matrix.insert(matrix.end(), column.begin(), column.end());
    }
    const std::vector<double> right = sum_of_all(count);
    std::vector<double> sum(count), ones(columns, 1);
    const Doubles on_device(matrix), device_ones(ones);
    Doubles result(count);
    const double kernel = microseconds([&] {
      GPU_GOOD(cuMemcpyAsync, result.address(), on_device.address(), count * sizeof(double),
               stream_);
      for (std::size_t one = 1; one < columns; ++one) {
        gpu::weft_good(weft_reduce_local_enqueue(on_device.data() + one * count, result.data(),
                                                 count, WEFT_GPU_DOUBLE, WEFT_GPU_SUM, stream_));
      }
    });
    check(result, right);
    double gemv = 0, cpu_gemv = 0;
    if (blas_.is_there()) {
      clear(result);
      gemv = microseconds(
          [&] { blas_.product(n, rows, on_device.data(), device_ones.data(), result.data()); });
      check(result, right);
    }
    const double loop = microseconds([&] {
      std::copy(matrix.begin(), matrix.begin() + n, sum.begin());
      for (std::size_t one = 1; one < columns; ++one) {
        for (std::size_t i = 0; i < count; ++i) sum[i] += matrix[one * count + i];
      }
    });
    wrong_ += gpu::total(differences(sum, right));
    if (cpu_multiplies_) {
      std::fill(sum.begin(), sum.end(), 0);
      cpu_gemv =
          microseconds([&] { cpu_blas_.product(n, rows, matrix.data(), ones.data(), sum.data()); });
      wrong_ += gpu::total(differences(sum, right));
    }
    if (gpu::rank != 0) return;
    std::printf("%9zu %10.2f %s %12.2f %s\n", count * sizeof(double), kernel, cell(gemv).c_str(),
                loop, cell(cpu_gemv).c_str());
    std::fflush(stdout);
  }

  // Returns the number as text for the table; "-" for 0, which means that it was not measured.
  static std::string cell(double number) {
    char text[32] = "         -";
    if (number > 0) std::snprintf(text, sizeof text, "%10.2f", number);
    return text;
  }

  const Settings& settings_;
  const gpu::Device device_;
  const Stream stream_ = gpu::new_stream();
  void* const nothing_;
  Blas blas_;
  const CpuBlas cpu_blas_;
  const bool cpu_multiplies_;
  const gpu::Nccl nccl_;
  long wrong_ = 0;
  int judged_ = 0;
  bool met_ = true;
  std::string way_;
};

bool are_lengths(const trials::Words& words) {
  return std::all_of(words.begin(), words.end(), [](const std::string& word) {
    char* end = nullptr;
    const long bytes = std::strtol(word.c_str(), &end, 10);
    return !word.empty() && *end == 0 && bytes > 0 && bytes <= 1 << 30 && bytes % 8 == 0;
  });
}

}  // namespace

int main(int argc, char** argv) {
  gpu::begin(&argc, &argv, "gpu_allreduce");
  Settings settings;
  trials::Options options;
  options.words("bytes", &settings.bytes);
  options.number("turns", &settings.turns);
  options.text("driver", &settings.driver);
  options.text("blas", &settings.blas);
  options.words("cpu-blas", &settings.cpu_blas);
  options.text("nccl", &settings.nccl);
  std::string problem = options.read(argc, argv);
  if (problem.empty() && !are_lengths(settings.bytes)) problem = "--bytes takes multiples of 8";
  int status = 2;
  if (problem.empty()) {
    problem = gpu::load_driver(settings.driver, weft_programs_image_there);
    status = problem.empty() ? Program(settings).run() : gpu::kNoDevice;
  }
  if (!problem.empty()) trials::refuse("gpu_allreduce", problem);
  MPI_Finalize();
  return status;
}
