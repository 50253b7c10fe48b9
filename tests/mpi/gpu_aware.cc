// Collectives in streams with an MPI library that accepts device memory. The program stands in for
// such a library: its own MPI_Ibcast, MPI_Iallreduce and MPI_Allreduce_init translate device
// addresses and call the driver, which a capture forbids to threads that have not changed their
// capture mode. Open MPI's reductions do not translate addresses, so they get no device memory.
// Usage: `gpu_aware DRIVER`, where DRIVER is the stand-in of tests/device.
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "gpu_standin.h"
#include "weft_gpu.h"

namespace {

using namespace gpu::driver;

constexpr int kCount = 200'000;  // so large that no kernel carries the collective out
int failures = 0, cases = 0, rank = 0, ranks = 1;
std::atomic<int> device_calls{0}, reductions{0}, refused{0};

#ifdef OMPI_MAJOR_VERSION
constexpr bool kReducesOnDevice = false;
#else
constexpr bool kReducesOnDevice = true;
#endif

void good(int code, const char* what) {
  if (code == 0) return;
  std::printf("rank %d: %s: %d, %s\n", rank, what, code, weft_gpu_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// Returns where the processor finds the contents of a device address that the library was given.
// The device must be current on the calling thread.
void* looked_through(const void* address) {
  void* context = nullptr;
  std::uintptr_t scratch = 0;
  void* const reached =
      address == MPI_IN_PLACE ? const_cast<void*>(address) : standin::data(address);
  if (reached != address) ++device_calls;
  cuCtxGetCurrent(&context);
  if (!context || cuMemAlloc_v2(&scratch, 64) != 0) {
    ++refused;
  } else {
    cuMemFree_v2(scratch);
  }
  return reached;
}

void* reduced(const void* address) {
  const int before = device_calls;
  void* const reached = looked_through(address);
  reductions += device_calls - before;
  return reached;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int MPIX_Query_cuda_support() {
  return 1;
}

extern "C" int MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
                          MPI_Request* request) {
  return PMPI_Ibcast(looked_through(buffer), count, type, root, comm, request);
}

extern "C" int MPI_Iallreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm, MPI_Request* request) {
  return PMPI_Iallreduce(reduced(from), reduced(to), count, type, op, comm, request);
}

// Open MPI has this function since 5.0, though it calls itself MPI 3.1.
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
extern "C" int MPI_Allreduce_init(const void* from, void* to, int count, MPI_Datatype type,
                                  MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PMPI_Allreduce_init(reduced(from), reduced(to), count, type, op, comm, info, request);
}
#endif

namespace {

// Ints in device memory, which all have the rank's number as value.
class Buffer {
 public:
  Buffer() {
    const std::vector<int> content(kCount, rank);
    good(cuMemAlloc_v2(&address_, kCount * sizeof(int)), "allocate");
    good(cuMemcpy(address_, reinterpret_cast<std::uintptr_t>(content.data()), kCount * sizeof(int)),
         "copy");
  }
  ~Buffer() { cuMemFree_v2(address_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return reinterpret_cast<void*>(address_); }
  void check(const char* form, int right) const {
    std::vector<int> content(kCount);
    good(cuMemcpy(reinterpret_cast<std::uintptr_t>(content.data()), address_, kCount * sizeof(int)),
         "copy");
    ++cases;
    if (content == std::vector<int>(kCount, right)) return;
    ++failures;
    std::printf("rank %d: wrong: %s\n", rank, form);
  }

 private:
  std::uintptr_t address_ = 0;
};

weft_gpu_request enqueue(const Buffer& buffer, Stream stream) {
  weft_gpu_request request = nullptr;
  good(weft_iallreduce_enqueue(MPI_IN_PLACE, buffer.data(), kCount, MPI_INT, MPI_SUM,
                               MPI_COMM_WORLD, stream, &request),
       "enqueue");
  return request;
}

void end(weft_gpu_request request, Stream stream) {
  good(weft_wait_enqueue(request, stream), "wait");
  good(weft_gpu_request_free(&request), "free");
}

void delay(Stream stream) {
  standin::add_kernel("test_late", 0, nullptr, [](void* const*) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  });
  void* late = nullptr;
  good(cuModuleGetFunction(&late, nullptr, "test_late"), "kernel");
  good(cuLaunchKernel(late, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), "kernel");
}

// While one stream is being captured, in which a collective is also prepared, the agent starts a
// collective that another stream has reached.
void check_beside_a_capture(Stream stream, Stream other, int sum) {
  Buffer beside, captured;
  void *graph = nullptr, *exec = nullptr;
  delay(other);
  const weft_gpu_request late = enqueue(beside, other);
  good(cuStreamBeginCapture_v2(stream, 0), "capture");
  end(enqueue(captured, stream), stream);
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  good(cuStreamEndCapture(stream, &graph), "end of capture");
  end(late, other);
  good(cuGraphInstantiateWithFlags(&exec, graph, 0), "instantiate");
  for (int i = 0; i < 2; ++i) good(cuGraphLaunch(exec, stream), "launch");
  for (Stream one : {stream, other}) good(cuStreamSynchronize(one), "synchronise");
  good(cuGraphExecDestroy(exec), "destroy");
  good(cuGraphDestroy(graph), "destroy");
  beside.check("beside a capture", sum);
  captured.check("in a graph", sum * ranks);
}

void check_all(int sum) {
  Stream stream = nullptr, other = nullptr;
  good(cuStreamCreate(&stream, 1), "stream");
  good(cuStreamCreate(&other, 1), "stream");
  {
    Buffer buffer;
    end(enqueue(buffer, stream), stream);
    good(cuStreamSynchronize(stream), "synchronise");
    buffer.check("enqueued", sum);
  }
  {
    Buffer buffer;
    weft_gpu_request request = nullptr;
    good(weft_ibcast_enqueue(buffer.data(), kCount, MPI_INT, 1, MPI_COMM_WORLD, stream, &request),
         "enqueue");
    end(request, stream);
    good(cuStreamSynchronize(stream), "synchronise");
    buffer.check("broadcast", 1);
  }
  {
    Buffer buffer;
    weft_gpu_request request = nullptr;
    good(weft_allreduce_init(MPI_IN_PLACE, buffer.data(), kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                             &request),
         "init");
    for (int i = 0; i < 2; ++i) good(weft_run_enqueue(request, stream), "run");
    good(weft_gpu_request_free(&request), "free");
    good(cuStreamSynchronize(stream), "synchronise");
    buffer.check("persistent", sum * ranks);
  }
  check_beside_a_capture(stream, other, sum);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || !standin::load_driver(argv[1]) || !standin::data) {
    std::fprintf(stderr, "usage: gpu_aware DRIVER\n");
    return 2;
  }
  standin::begin(&argc, &argv, &rank, &ranks);
  check_all(ranks * (ranks - 1) / 2);
  if (device_calls == reductions || (reductions > 0) != kReducesOnDevice || refused > 0) {
    ++failures;
    std::printf("rank %d: %d addresses of the device's, %d in reductions, %d refused\n", rank,
                device_calls.load(), reductions.load(), refused.load());
  }
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) std::printf("%d cases equal\n", cases);
  MPI_Finalize();
  return all > 0;
}
