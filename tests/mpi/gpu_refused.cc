// gpu_refused DRIVER: enqueueing a collective fails at once on one rank, outside of a capture.
// After that no rank may enqueue anything on this communicator, since the other ranks have enqueued
// the collective. But a wrong argument, of which all ranks are told, changes nothing. gpu_refused
// DRIVER prepare: prints only what the preparation of a collective returns.
#include <mpi.h>

#include <cstdio>

#include "gpu_standin.h"
#include "weft_gpu.h"

using namespace gpu::driver;

namespace {

enum class Why { device, capture, argument };

bool is_right(Why why, Stream stream) {
  constexpr int kOutOfMemory = 2;
  MPI_Comm own;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  void* context = nullptr;
  weft_gpu_request request = nullptr;
  cuCtxGetCurrent(&context);
  if (why == Why::device) cuCtxSetCurrent(nullptr);
  if (why == Why::capture) standin::fail("cuStreamGetCaptureInfo", 1, kOutOfMemory);
  const int refused = weft_ibarrier_enqueue(own, stream, why == Why::argument ? nullptr : &request);
  cuCtxSetCurrent(context);
  const int next = weft_ibarrier_enqueue(own, stream, &request);
  if (next == MPI_SUCCESS) {
    weft_wait_enqueue(request, stream);
    cuStreamSynchronize(stream);
    weft_gpu_request_free(&request);
  }
  MPI_Comm_free(&own);
  return refused != MPI_SUCCESS && (next == MPI_SUCCESS) == (why == Why::argument);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || !standin::load_driver(argv[1]) || !standin::fail) {
    std::fprintf(stderr, "usage: gpu_refused STAND-IN [prepare]\n");
    return 2;
  }
  int rank = 0, ranks = 1, wrong = 0;
  standin::begin(&argc, &argv, &rank, &ranks);
  Stream stream = nullptr;
  if (cuStreamCreate(&stream, 1)) return 1;
  if (argc > 2) {
    weft_gpu_request request = nullptr;
    const bool made = weft_barrier_init(MPI_COMM_WORLD, &request) == MPI_SUCCESS;
    std::printf("rank %d: %s\n", rank, made ? "prepared" : weft_gpu_error());
    if (made) weft_gpu_request_free(&request);
    MPI_Finalize();
    return 0;
  }
  for (const Why why : {Why::argument, Why::device, Why::capture}) {
    if (is_right(why, stream)) continue;
    std::printf("wrong: case %d: %s\n", static_cast<int>(why), weft_gpu_error());
    ++wrong;
  }
  MPI_Finalize();
  return wrong;
}
