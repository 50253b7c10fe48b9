// Collectives whose buffers are in device memory, which the processor cannot access: on all ranks
// or on some, as send or receive buffers. This is an ordinary MPI program: `device_memory DRIVER`,
// where DRIVER is the stand-in of tests/device for CUDA's driver or HIP's runtime. The result must
// be what the MPI library computes from the same data in ordinary memory while Weft is switched off
// by MPI_Pcontrol.
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

int failures = 0, cases = 0;

template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

std::uintptr_t address_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// The functions of CUDA's driver or HIP's runtime that this program calls.
class Driver {
 public:
  bool load(const char* path) {
    void* const library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) return false;
    is_hip_ = find(library, "hipMalloc", hip_malloc_);
    if (is_hip_) {
      return find(library, "hipFree", hip_free_) && find(library, "hipMemcpy", hip_copy_) &&
             find(library, "hipPeekAtLastError", hip_error_);
    }
    return find(library, "cuMemAlloc_v2", cuda_malloc_) &&
           find(library, "cuMemFree_v2", cuda_free_) && find(library, "cuMemcpy", cuda_copy_) &&
           find(library, "cuPointerGetAttribute", attribute_) &&
           find(library, "cuCtxPushCurrent_v2", push_) &&
           find(library, "cuCtxPopCurrent_v2", pop_) &&
           find(library, "cuDevicePrimaryCtxRetain", retain_) &&
           find(library, "cuCtxSetCurrent", choose_) &&
           find(library, "cuStreamCreate", create_stream_) &&
           find(library, "cuStreamSynchronize", synchronise_) &&
           find(library, "cuStreamBeginCapture_v2", begin_capture_) &&
           find(library, "cuStreamEndCapture", end_capture_) &&
           find(library, "standin_add_kernel", add_kernel_) &&
           find(library, "cuModuleGetFunction", function_) &&
           find(library, "cuLaunchKernel", launch_);
  }
  bool is_hip() const { return is_hip_; }

  void* allocate(std::size_t bytes) {
    void* memory = nullptr;
    std::uintptr_t address = 0;
    if (is_hip_) {
      hip_malloc_(&memory, bytes);
      return memory;
    }
    cuda_malloc_(&address, bytes);
    return reinterpret_cast<void*>(address);
  }

  void release(void* device) { is_hip_ ? hip_free_(device) : cuda_free_(address_of(device)); }

  void copy(void* to, const void* from, std::size_t bytes, const void* device) {
    if (is_hip_) {
      hip_copy_(to, from, bytes, 4);  // hipMemcpyDefault
      return;
    }
    void* context = nullptr;
    attribute_(&context, 1, address_of(device));
    push_(context);
    cuda_copy_(address_of(to), address_of(from), bytes);
    pop_(&context);
  }

  // Creates a stream in a context of its own (CUDA only). blocking: the default stream waits for
  // it.
  void* stream(bool blocking) {
    void *context = nullptr, *made = nullptr;
    retain_(&context, 0);
    choose_(context);
    create_stream_(&made, blocking ? 0 : 1);
    return made;
  }
  void launch(void* stream, const char* name, void (*run)(void* const*)) {
    void* kernel = nullptr;
    add_kernel_(name, 0, nullptr, run);
    function_(&kernel, nullptr, name);
    launch_(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
  }
  void synchronise(void* stream) { synchronise_(stream); }
  void begin_capture(void* stream) { begin_capture_(stream, 0); }
  bool end_capture(void* stream) {
    void* graph = nullptr;
    return end_capture_(stream, &graph) == 0;
  }

  // Returns the error that an earlier call has left for the function that reads the last error.
  int error() { return is_hip_ ? hip_error_() : 0; }

 private:
  bool is_hip_ = false;
  int (*cuda_malloc_)(std::uintptr_t* address, std::size_t bytes);
  int (*cuda_free_)(std::uintptr_t address);
  int (*cuda_copy_)(std::uintptr_t to, std::uintptr_t from, std::size_t bytes);
  int (*attribute_)(void* value, int which, std::uintptr_t address);
  int (*push_)(void* context);
  int (*pop_)(void** context);
  int (*retain_)(void** context, int device);
  int (*choose_)(void* context);
  int (*create_stream_)(void** stream, unsigned flags);
  int (*synchronise_)(void* stream);
  int (*begin_capture_)(void* stream, int mode);
  int (*end_capture_)(void* stream, void** graph);
  void (*add_kernel_)(const char* name, int parameters, const std::size_t* sizes,
                      void (*run)(void* const* parameters));
  int (*function_)(void** function, void* module, const char* name);
  int (*launch_)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                 unsigned shared, void* stream, void** parameters, void** extra);
  int (*hip_malloc_)(void** memory, std::size_t bytes);
  int (*hip_free_)(void* memory);
  int (*hip_copy_)(void* to, const void* from, std::size_t bytes, int direction);
  int (*hip_error_)();
};
Driver driver;

// Ints in device memory or in host memory.
class Buffer {
 public:
  Buffer(const std::vector<int>& content, bool on_device) : host_(content) {
    if (!on_device) return;
    device_ = driver.allocate(bytes());
    driver.copy(device_, host_.data(), bytes(), device_);
  }
  ~Buffer() {
    if (device_) driver.release(device_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  int* data() { return device_ ? static_cast<int*>(device_) : host_.data(); }
  std::vector<int> content() {
    if (device_) driver.copy(host_.data(), device_, bytes(), device_);
    return host_;
  }

 private:
  std::size_t bytes() const { return host_.size() * sizeof(int); }

  std::vector<int> host_;
  void* device_ = nullptr;
};

struct World {
  int rank = 0, size = 1;
  int count = 0;                            // elements in a block
  MPI_Datatype spread = MPI_DATATYPE_NULL;  // an int, followed by a hole of the same size
};

using Start = std::function<void(const World&, int* from, int* to, MPI_Request*)>;
using Whole = std::function<void(const World&, int* from, int* to)>;

struct Case {
  const char* name;
  Whole blocking;
  Start start, initialise;
};

// Defines each collective in three forms. The last arguments are the MPI arguments before the
// request.
#define FORMS(Name, name, ...)                                                                                          \
  Case {                                                                                                                \
#Name, []([[maybe_unused]] const World& w, [[maybe_unused]] int* from, int* to) { MPI_##Name(__VA_ARGS__); },         \
        []([[maybe_unused]] const World& w, [[maybe_unused]] int* from, int* to, MPI_Request* request) {                  \
          MPI_I##name(__VA_ARGS__, request);                                            \
        },                                                                              \
        []([[maybe_unused]] const World& w, [[maybe_unused]] int* from, int* to, MPI_Request* request) {                  \
          MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, request);                       \
        } \
  }

// Blocks lie in the reverse order of ranks. Between two of them there is one int that must stay
// unchanged.
constexpr int kMostRanks = 16;
const int* at(const World& w) {
  static int all[kMostRanks];
  for (int rank = 0; rank < w.size; ++rank) all[rank] = (w.size - 1 - rank) * w.count;
  return all;
}
const int* counts(const World& w) {
  static int all[kMostRanks];
  std::fill(all, all + w.size, w.count - 1);
  return all;
}

const std::vector<Case>& all_cases() {
  static const MPI_Comm world = MPI_COMM_WORLD;
  static const std::vector<Case> all = {
      FORMS(Allreduce, allreduce, from, to, w.count, MPI_INT, MPI_SUM, world),
      FORMS(Allreduce, allreduce, MPI_IN_PLACE, to, w.count, MPI_INT, MPI_SUM, world),
      FORMS(Reduce, reduce, from, to, w.count, MPI_INT, MPI_MAX, w.size - 1, world),
      FORMS(Bcast, bcast, to, w.count, MPI_INT, 1, world),
      FORMS(Bcast, bcast, to, w.count / 2, w.spread, 1, world),
      FORMS(Gather, gather, from, w.count, MPI_INT, to, w.count, MPI_INT, 1, world),
      FORMS(Scatter, scatter, from, w.count, MPI_INT, to, w.count, MPI_INT, 1, world),
      FORMS(Allgather, allgather, from, w.count, MPI_INT, to, w.count, MPI_INT, world),
      FORMS(Allgatherv, allgatherv, from, w.count - 1, MPI_INT, to, counts(w), at(w), MPI_INT,
            world),
      FORMS(Alltoall, alltoall, from, w.count, MPI_INT, to, w.count, MPI_INT, world),
      FORMS(Alltoallv, alltoallv, from, counts(w), at(w), MPI_INT, to, counts(w), at(w), MPI_INT,
            world),
      FORMS(Reduce_scatter_block, reduce_scatter_block, from, to, w.count, MPI_INT, MPI_SUM, world),
      FORMS(Scan, scan, from, to, w.count, MPI_INT, MPI_SUM, world),
  };
  return all;
}

std::vector<int> filled(const World& w, int seed) {
  std::vector<int> content(static_cast<std::size_t>(w.count) * w.size);
  for (std::size_t i = 0; i < content.size(); ++i)
    content[i] = static_cast<int>(i * 7 + seed * 1000 + w.rank * 31);
  return content;
}

std::vector<int> expected(const World& w, const Case& one) {
  std::vector<int> from = filled(w, 1), to = filled(w, 2);
  MPI_Pcontrol(0);
  one.blocking(w, from.data(), to.data());
  MPI_Pcontrol(1);
  return to;
}

void check(const World& w, const Case& one, const char* form, Buffer& to,
           const std::vector<int>& right) {
  ++cases;
  if (to.content() == right) return;
  ++failures;
  std::printf("rank %d: wrong: %s, %s, %d ints\n", w.rank, one.name, form, w.count);
}

void run(const World& w, const Case& one, bool from_device, bool to_device) {
  const std::vector<int> right = expected(w, one);
  Buffer from(filled(w, 1), from_device);
  MPI_Request request;
  {
    Buffer to(filled(w, 2), to_device);
    one.blocking(w, from.data(), to.data());
    check(w, one, "blocking", to, right);
  }
  {
    Buffer to(filled(w, 2), to_device);
    one.start(w, from.data(), to.data(), &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(w, one, "non-blocking", to, right);
  }
  Buffer to(filled(w, 2), to_device);
  one.initialise(w, from.data(), to.data(), &request);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(w, one, "persistent", to, right);
  MPI_Request_free(&request);
}

void say_wrong(const World& w, const char* what) {
  ++failures;
  std::printf("rank %d: wrong: %s\n", w.rank, what);
}

void allreduce(const World& w, Buffer& buffer) {
  MPI_Request request;
  MPI_Iallreduce(MPI_IN_PLACE, buffer.data(), w.count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// The kernel waits for something that this rank does after the collective.
void check_beside_a_kernel(const World& w) {
  static std::atomic<bool> may_continue{false}, has_waited_in_vain{false};
  const std::vector<int> right = expected(w, all_cases()[1]);
  Buffer buffer(filled(w, 2), true);
  void* const stream = driver.stream(true);
  driver.launch(stream, "test_waits", [](void* const*) {
    const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!may_continue && std::chrono::steady_clock::now() < latest) std::this_thread::yield();
    has_waited_in_vain = !may_continue;
  });
  allreduce(w, buffer);
  may_continue = true;
  driver.synchronise(stream);
  if (has_waited_in_vain) say_wrong(w, "a collective waits for a kernel");
  check(w, all_cases()[1], "beside a kernel", buffer, right);
}

void check_beside_a_capture(const World& w) {
  const std::vector<int> right = expected(w, all_cases()[1]);
  Buffer buffer(filled(w, 2), true);
  void* const stream = driver.stream(false);
  driver.begin_capture(stream);
  allreduce(w, buffer);
  if (!driver.end_capture(stream)) say_wrong(w, "a collective has broken a capture");
  check(w, all_cases()[1], "beside a capture", buffer, right);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || !driver.load(argv[1])) {
    std::fprintf(stderr, "usage: device_memory DRIVER\n");
    return 2;
  }
  MPI_Init(&argc, &argv);
  World w;
  MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &w.size);
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &w.spread);
  MPI_Type_commit(&w.spread);
  for (const int count : {2, 100, 50000}) {
    w.count = count;
    for (const Case& one : all_cases()) {
      run(w, one, true, true);
      run(w, one, w.rank % 2 == 0, w.rank % 2 != 0);
      run(w, one, w.rank == 1, w.rank == 1);
    }
  }
  if (!driver.is_hip()) {
    check_beside_a_kernel(w);
    check_beside_a_capture(w);
  }
  MPI_Type_free(&w.spread);
  if (const int error = driver.error()) {
    ++failures;
    std::printf("rank %d: error %d is left to the application\n", w.rank, error);
  }
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (w.rank == 0 && all == 0) std::printf("%d cases equal\n", cases);
  MPI_Finalize();
  return all > 0;
}
