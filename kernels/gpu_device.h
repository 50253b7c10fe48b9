// Functions that all programs for GPUs here use: a device for each rank with streams and kernels,
// and memory on it.
#pragma once
#include <dlfcn.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu_driver.h"
#include "trials.h"
#include "weft_gpu.h"

namespace gpu {

using namespace driver;

// Device attributes, with the values of cuda.h.
constexpr int kProcessors = 16, kStreamValues = 122;
constexpr int kThreadLocalCapture = 1;
constexpr unsigned kMapped = 2, kNonBlocking = 1, kWithoutTiming = 2;
constexpr int kNoDevice = 77;  // exit status of a program that finds no device

inline const char* program = "gpu";
inline int rank = 0, ranks = 1;

[[noreturn]] inline void stop(const std::string& why) {
  trials::give_up(program, why);
}
inline void good(int code, const char* what) {
  if (code != 0) stop(std::string(what) + " failed with " + std::to_string(code));
}
#define GPU_GOOD(name, ...) gpu::good(gpu::name(__VA_ARGS__), #name)
inline void weft_good(int code) {
  if (code != MPI_SUCCESS) stop(weft_gpu_error());
}

// Loads the CUDA driver. Returns "" or the reason why there is no device. has_kernels: whether nvcc
// was there when the program was built.
inline std::string load_driver(const std::string& path, bool has_kernels) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) return "there is no GPU here: CUDA's driver cannot be loaded";
  const std::string lacking = lacking_in(library);
  if (!lacking.empty()) return "CUDA's driver is too old: it lacks " + lacking;
  int devices = 0;
  if (cuInit(0) != 0 || cuDeviceGetCount(&devices) != 0 || devices == 0) {
    return "there is no GPU here: CUDA's driver finds none";
  }
  return has_kernels ? "" : "this build has no kernels for GPUs, since there was no nvcc";
}

// Initialises MPI with MPI_THREAD_MULTIPLE, and sets `rank` and `ranks`.
inline void begin(int* argc, char*** argv, const char* name) {
  int level = 0;
  program = name;
  MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

// The device of this rank. The ranks of a node use its devices in turn.
class Device {
 public:
  explicit Device(const void* image) {
    MPI_Comm node;
    int node_rank = 0, neighbours = 1, devices = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &node_rank);
    MPI_Comm_size(node, &neighbours);
    MPI_Comm_free(&node);
    GPU_GOOD(cuDeviceGetCount, &devices);
    GPU_GOOD(cuDeviceGet, &device_, node_rank % devices);
    char name[128] = "";
    GPU_GOOD(cuDeviceGetName, name, sizeof name, device_);
    name_ = name, alone_ = devices > node_rank;
    sharing_ = (neighbours - node_rank % devices + devices - 1) / devices;
    void* context = nullptr;
    GPU_GOOD(cuDevicePrimaryCtxRetain, &context, device_);
    GPU_GOOD(cuCtxSetCurrent, context);
    GPU_GOOD(cuModuleLoadData, &module_, image);
  }
  const std::string& name() const { return name_; }
  bool is_alone() const { return alone_; }  // whether no lower rank uses the same device
  int sharing() const { return sharing_; }  // number of ranks that use this device
  int attribute(int which) const {
    int value = 0;
    GPU_GOOD(cuDeviceGetAttribute, &value, which, device_);
    return value;
  }
  void* kernel(const char* name) const {
    void* function = nullptr;
    GPU_GOOD(cuModuleGetFunction, &function, module_, name);
    return function;
  }

 private:
  int device_ = 0;
  std::string name_;
  bool alone_ = true;
  int sharing_ = 1;
  void* module_ = nullptr;
};

inline Stream new_stream() {
  Stream made = nullptr;
  GPU_GOOD(cuStreamCreate, &made, kNonBlocking);
  return made;
}
inline void synchronise(Stream stream) {
  GPU_GOOD(cuStreamSynchronize, stream);
}

// Makes later work in `to` wait for all work that is in `from` now.
inline void join(Stream from, Stream to, void* event) {
  GPU_GOOD(cuEventRecord, event, from);
  GPU_GOOD(cuStreamWaitEvent, to, event, 0);
}
inline void* new_event() {
  void* made = nullptr;
  GPU_GOOD(cuEventCreate, &made, kWithoutTiming);
  return made;
}

template <class... Arguments>
void launch(void* kernel, unsigned blocks, unsigned threads, Stream stream,
            Arguments... arguments) {
  void* parameters[] = {&arguments..., nullptr};
  GPU_GOOD(cuLaunchKernel, kernel, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr);
}

// Copies from host memory that is not pinned. It waits for the copy, since streams that do not wait
// for the default one could otherwise read the data too early.
inline void copy_to_device(Address to, const void* from, std::size_t bytes) {
  GPU_GOOD(cuMemcpy, to, reinterpret_cast<Address>(from), bytes);
  synchronise(nullptr);
}

// An array in device memory.
template <class T>
class Array {
 public:
  explicit Array(std::size_t count) : count_(count) {
    GPU_GOOD(cuMemAlloc_v2, &address_, count * sizeof(T));
  }
  explicit Array(const std::vector<T>& content) : Array(content.size()) { set(content); }
  ~Array() { cuMemFree_v2(address_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  T* data() const { return reinterpret_cast<T*>(address_); }
  Address address() const { return address_; }
  std::size_t count() const { return count_; }
  void set(const std::vector<T>& content) {
    copy_to_device(address_, content.data(), content.size() * sizeof(T));
  }
  std::vector<T> content() const {
    std::vector<T> found(count_);
    GPU_GOOD(cuMemcpy, reinterpret_cast<Address>(found.data()), address_, count_ * sizeof(T));
    return found;
  }

 private:
  const std::size_t count_;
  Address address_ = 0;
};

// An array in host memory that is mapped on the device.
template <class T>
struct Mapped {
  T* host = nullptr;
  T* device = nullptr;

  explicit Mapped(std::size_t count) {
    void* memory = nullptr;
    Address seen = 0;
    GPU_GOOD(cuMemHostAlloc, &memory, count * sizeof(T), kMapped);
    GPU_GOOD(cuMemHostGetDevicePointer_v2, &seen, memory, 0);
    host = static_cast<T*>(memory), device = reinterpret_cast<T*>(seen);
    for (std::size_t i = 0; i < count; ++i) host[i] = T{};
  }
};

// Returns the greatest of all ranks' values.
inline double slowest(double mine) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}
inline long total(long mine) {
  long all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

// Runs body(), which enqueues work in the stream, `times` times. Returns the slowest rank's time
// for one of them in seconds.
template <class Body>
double seconds_for_each(int times, Stream stream, const Body& body) {
  synchronise(stream);
  MPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  for (int i = 0; i < times; ++i) body();
  synchronise(stream);
  return slowest((MPI_Wtime() - began) / times);
}

}  // namespace gpu
