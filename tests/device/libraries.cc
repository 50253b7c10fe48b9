// Stand-ins for libraries that programs on GPUs load beside the driver: cuFFT's transforms,
// computed by the definition of a Fourier transform, and cuBLAS's product of a matrix and a vector.
// Both are enqueued in the stream. This file also has the kernels of kernels/gpu_programs.cu.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "kernels/gpu_fft3d.h"
#include "kernels/gpu_notify.h"
#include "standin.h"

extern "C" {
int cuModuleGetFunction(void** function, void* module, const char* name);
int cuLaunchKernel(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   unsigned, void* stream, void** parameters, void** extra);
}

namespace {

using Complex = std::complex<double>;

template <class T>
T parameter(void* const* parameters, int which) {
  T value;
  std::memcpy(&value, parameters[which], sizeof value);
  return value;
}

template <class T>
T* data_of(T* pointer) {
  return static_cast<T*>(standin_data(pointer));
}

// A plan as cufftPlanMany describes it: `rank` extents, of which the last one varies fastest.
struct Plan {
  int rank = 0, extents[3] = {1, 1, 1}, batch = 1, distance = 0;
  void* stream = nullptr;
};

std::mutex plans_mutex;
std::map<int, Plan> plans;

// Transforms all lines along one axis. stride: distance between neighbouring points of a line.
void transform_lines(Complex* data, int points, int extent, int stride, int sign) {
  std::vector<Complex> line(static_cast<std::size_t>(extent));
  for (int start = 0; start < points; ++start) {
    if (start / stride % extent != 0) continue;
    for (int k = 0; k < extent; ++k) {
      Complex sum = 0;
      for (int i = 0; i < extent; ++i) {
        sum += data[start + i * stride] *
               std::polar(1.0, sign * 2 * M_PI * (static_cast<long>(i) * k % extent) / extent);
      }
      line[static_cast<std::size_t>(k)] = sum;
    }
    for (int k = 0; k < extent; ++k) data[start + k * stride] = line[static_cast<std::size_t>(k)];
  }
}

void transform(void* const* parameters) {
  const auto plan = parameter<Plan>(parameters, 0);
  const auto* const in = data_of(parameter<const Complex*>(parameters, 1));
  auto* const out = data_of(parameter<Complex*>(parameters, 2));
  const int sign = parameter<int>(parameters, 3);
  const int points = plan.extents[0] * plan.extents[1] * plan.extents[2];
  for (int i = 0; i < plan.batch; ++i) {
    Complex* const data = out + static_cast<long>(i) * plan.distance;
    if (in != out) std::copy_n(in + static_cast<long>(i) * plan.distance, points, data);
    int stride = 1;
    for (int axis = plan.rank - 1; axis >= 0; --axis) {
      transform_lines(data, points, plan.extents[axis], stride, sign);
      stride *= plan.extents[axis];
    }
  }
}

void multiply(int rows, int columns, const double* matrix, const double* x, double* y) {
  for (int row = 0; row < rows; ++row) {
    double sum = 0;
    for (int column = 0; column < columns; ++column) {
      sum += matrix[static_cast<long>(column) * rows + row] * x[column];
    }
    y[row] = sum;
  }
}

void product(void* const* parameters) {
  multiply(parameter<int>(parameters, 0), parameter<int>(parameters, 1),
           data_of(parameter<const double*>(parameters, 2)),
           data_of(parameter<const double*>(parameters, 3)),
           data_of(parameter<double*>(parameters, 4)));
}

constexpr int kComputeThreads = 256, kComputeBlocks = 4;

const bool added = [] {
  constexpr std::size_t transforms[] = {sizeof(Plan), sizeof(void*), sizeof(void*), sizeof(int)};
  constexpr std::size_t products[] = {sizeof(int), sizeof(int), sizeof(void*), sizeof(void*),
                                      sizeof(void*)};
  constexpr std::size_t gates[] = {sizeof(void*), sizeof(void*), sizeof(std::uint64_t)};
  constexpr std::size_t computations[] = {sizeof(void*), sizeof(int)};
  constexpr std::size_t packs[] = {sizeof(FftPack)}, places[] = {sizeof(FftPlace)};
  standin_add_kernel("standin_transform", 4, transforms, transform);
  standin_add_kernel("standin_product", 5, products, product);
  standin_add_kernel("program_nothing", 0, nullptr, [](void* const*) {});
  standin_add_kernel("notify_gate_kernel", 3, gates, [](void* const* p) {
    notify_gate(parameter<const std::uint64_t*>(p, 0), parameter<std::uint64_t*>(p, 1),
                parameter<std::uint64_t>(p, 2));
  });
  // The kernel's grid has the size that its caller asks for.
  standin_add_kernel("notify_compute_kernel", 2, computations, [](void* const* p) {
    float* const out = data_of(parameter<float*>(p, 0));
    for (long i = 0; i < kComputeBlocks * kComputeThreads; ++i) {
      notify_compute(out, i, parameter<int>(p, 1));
    }
  });
  standin_add_kernel("fft_pack_kernel", 1, packs, [](void* const* p) {
    auto pack = parameter<FftPack>(p, 0);
    pack.from = data_of(pack.from), pack.to = data_of(pack.to);
    fft_pack(pack, 0, 1);
  });
  standin_add_kernel("fft_place_kernel", 1, places, [](void* const* p) {
    auto place = parameter<FftPlace>(p, 0);
    place.from = data_of(place.from), place.to = data_of(place.to);
    fft_place(place, 0, 1);
  });
  return true;
}();

int launch(const char* kernel, void* stream, void** parameters) {
  void* function = nullptr;
  if (const int code = cuModuleGetFunction(&function, nullptr, kernel)) return code;
  return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
}

}  // namespace

DRIVER int cufftPlanMany(int* handle, int rank, int* extents, int*, int, int distance, int*, int,
                         int, int, int batch) {
  const std::lock_guard lock(plans_mutex);
  if (rank < 1 || rank > 3 || batch < 1) return standin::kInvalidValue;
  Plan plan{rank, {1, 1, 1}, batch, distance, nullptr};
  std::copy_n(extents, rank, plan.extents);
  *handle = static_cast<int>(plans.size()) + 1;
  plans[*handle] = plan;
  return standin::kSuccess;
}

DRIVER int cufftSetStream(int handle, void* stream) {
  const std::lock_guard lock(plans_mutex);
  plans.at(handle).stream = stream;
  return standin::kSuccess;
}

DRIVER int cufftExecZ2Z(int handle, Complex* in, Complex* out, int sign) {
  const std::lock_guard lock(plans_mutex);
  Plan& plan = plans.at(handle);
  void* parameters[] = {&plan, &in, &out, &sign};
  return launch("standin_transform", plan.stream, parameters);
}

DRIVER int cublasCreate_v2(void** handle) {
  *handle = new void*(nullptr);
  return standin::kSuccess;
}

DRIVER int cublasSetStream_v2(void* handle, void* stream) {
  *static_cast<void**>(handle) = stream;
  return standin::kSuccess;
}

// Computes y = A x. Returns an error for other values of alpha, beta and the strides.
DRIVER int cublasDgemv_v2(void* handle, int transposed, int rows, int columns, const double* alpha,
                          const double* matrix, int leading, const double* x, int x_step,
                          const double* beta, double* y, int y_step) {
  if (transposed || *alpha != 1 || *beta != 0 || leading != rows || x_step != 1 || y_step != 1) {
    return standin::kInvalidValue;
  }
  void* parameters[] = {&rows, &columns, &matrix, &x, &y};
  return launch("standin_product", *static_cast<void**>(handle), parameters);
}

DRIVER void cblas_dgemv(int, int, int rows, int columns, double, const double* matrix, int,
                        const double* x, int, double, double* y, int) {
  multiply(rows, columns, matrix, x, y);
}
