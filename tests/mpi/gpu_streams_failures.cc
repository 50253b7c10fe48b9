// Collectives in streams that are refused or that fail, and datatypes that are freed early.
#include <dlfcn.h>

#include <atomic>
#include <thread>

#include "gpu_streams.h"

namespace streams {

// Datatypes are freed right after the call that uses them.
void types_are_freed_at_once() {
  if (!standin::add_kernel) return;
  MPI_Datatype every_second, pair;
  MPI_Type_vector(3, 1, 2, MPI_INT, &every_second);
  MPI_Type_contiguous(2, MPI_INT, &pair);
  for (MPI_Datatype* one : {&every_second, &pair}) MPI_Type_commit(one);
  Buffer spread(std::vector<int>(6, rank), kProcessor);
  Buffer from(std::vector<int>(2 * kMost, rank), kDevice), to(std::vector<int>(2 * kMost), kDevice);
  auto m = numbers(2, ranks);
  for (int i = 0; i < ranks; ++i) m.counts[i] = 1, m.ints[i] = pair;
  weft_gpu_request first = nullptr, second = nullptr;
  delay_stream();
  good(weft_ibcast_enqueue(spread.data(), 1, every_second, 1, world, stream, &first), "bcast");
  good(weft_ialltoallw_enqueue(from.data(), m.counts, m.bytes_at, m.ints, to.data(), m.counts,
                               m.bytes_at, m.ints, world, stream, &second),
       "alltoallw");
  for (MPI_Datatype* one : {&every_second, &pair}) MPI_Type_free(one);
  // A new type that may get the freed one's handle.
  MPI_Type_vector(1, 1, 1, MPI_CHAR, &every_second);
  MPI_Type_vector(1, 1, 1, MPI_CHAR, &pair);
  for (weft_gpu_request* one : {&first, &second}) {
    good(weft_wait_enqueue(*one, stream), "wait");
    good(weft_gpu_request_free(one), "free");
  }
  good(cuStreamSynchronize(stream), "synchronize");
  for (MPI_Datatype* one : {&every_second, &pair}) MPI_Type_free(one);
  std::vector<int> right(2 * kMost);
  for (int i = 0; i < ranks; ++i) {
    right[static_cast<std::size_t>(m.at[i])] = right[static_cast<std::size_t>(m.at[i]) + 1] = i;
  }
  expect(spread.content() == std::vector<int>{1, rank, 1, rank, 1, rank} && to.content() == right,
         "data types that are freed at once");
}

namespace {

std::atomic<bool> gate_is_open{false};
bool init_fails = false;  // whether MPI_Scan_init fails on this rank

enum class Step { device, memory, channels, init };

// Prepares a collective that no kernel carries out, or enqueues it into a graph, while `step` fails
// on one rank. why: the error of rank 1.
void expect_failure_at(Step step, bool is_captured, MPI_Comm comm, const std::vector<int>& sent,
                       const char* why) {
  constexpr int kOutOfMemory = 2;
  Buffer data(sent, kDevice);
  void *context = nullptr, *graph = nullptr;
  weft_gpu_request request = nullptr;
  const int count = static_cast<int>(sent.size());
  good(cuCtxGetCurrent(&context), "context");
  if (is_captured) good(cuStreamBeginCapture_v2(stream, 0), "capture");
  if (rank == 1) {
    if (step == Step::device) good(cuCtxSetCurrent(nullptr), "context");
    if (step == Step::memory) standin::fail("cuMemHostAlloc", 1, kOutOfMemory);
    if (step == Step::channels) standin::fail("cuEventCreate", 1, kOutOfMemory);
    init_fails = step == Step::init;
  }
  const int code = is_captured ? weft_iscan_enqueue(MPI_IN_PLACE, data.data(), count, MPI_INT,
                                                    MPI_MIN, comm, stream, &request)
                               : weft_scan_init(MPI_IN_PLACE, data.data(), count, MPI_INT, MPI_MIN,
                                                comm, &request);
  expect_refusal(code, rank == 1 ? why : "another rank cannot prepare this collective");
  init_fails = false;
  good(cuCtxSetCurrent(context), "context");
  if (!is_captured) return;
  good(cuStreamEndCapture(stream, &graph), "end of capture");
  good(cuGraphDestroy(graph), "destroy");
}

}  // namespace

// All ranks get an error and none hangs. All can continue, or are told that the communicator cannot
// be used any more. The test must precede all others, which leave events and pinned memory to be
// used again.
void one_rank_fails_at_each_step() {
  if (!standin::fail) return;
  struct {
    Step step;
    const char* why;
  } const all[] = {{Step::device, "no device is current on this thread"},
                   {Step::memory, "cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY"},
                   {Step::channels, "cuEventCreate: CUDA_ERROR_OUT_OF_MEMORY"},
                   {Step::init, ""}};
  const std::vector<int> sent(300'000, rank);
  const int count = static_cast<int>(sent.size());
  const auto prepare = [count](Buffer& data, MPI_Comm comm, weft_gpu_request* request) {
    return weft_scan_init(MPI_IN_PLACE, data.data(), count, MPI_INT, MPI_MIN, comm, request);
  };
  std::vector<weft_gpu_request> kept;  // kept, so that none of their resources is used again
  for (const bool is_captured : {false, true}) {
    for (const auto& [step, why] : all) {
      MPI_Comm own;
      MPI_Comm_dup(world, &own);
      expect_failure_at(step, is_captured, own, sent, why);
      Buffer data(sent, kDevice);
      weft_gpu_request request = nullptr;
      if (step == Step::init) {
        const char* const broken = "an earlier collective on this communicator has failed";
        expect_refusal(prepare(data, own, &request), broken);
        expect_refusal(weft_ibarrier_enqueue(own, stream, &request), broken);
      } else {
        good(prepare(data, own, &request), "init");
        good(weft_run_enqueue(request, stream), "run");
        good(cuStreamSynchronize(stream), "synchronize");
        expect(data.content() == std::vector<int>(sent.size(), 0), "after a failure of one rank");
        kept.push_back(request);
      }
      MPI_Comm_free(&own);
    }
  }
  for (weft_gpu_request& one : kept) good(weft_gpu_request_free(&one), "free");
}

// All ranks pass an operator that the type does not support, which MPI reports when the agent makes
// the call. An error that nobody asks for is printed at the end.
void failures_are_told() {
  if (!standin::add_kernel) return;
  standin::add_kernel("test_gate", 0, nullptr, [](void* const*) {
    while (!gate_is_open) std::this_thread::yield();
  });
  MPI_Comm own;
  MPI_Comm_dup(world, &own);
  MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  for (const bool is_asked : {true, false}) {
    MPI_Comm its;
    MPI_Comm_dup(own, &its);
    MPI_Comm_set_errhandler(its, MPI_ERRORS_RETURN);
    Buffer data(std::vector<int>(5, 1), kDevice);
    weft_gpu_request request = nullptr;
    gate_is_open = is_asked;
    if (!is_asked) launch("test_gate");
    good(weft_iallreduce_enqueue(MPI_IN_PLACE, data.data(), 5, MPI_FLOAT, MPI_BAND, its, stream,
                                 &request),
         "enqueue");
    weft_wait_enqueue(request, stream);
    if (!is_asked) good(weft_gpu_request_free(&request), "free");
    gate_is_open = true;
    good(cuStreamSynchronize(stream), "synchronize");
    if (is_asked) {
      int group = MPI_SUCCESS;
      MPI_Error_class(weft_gpu_request_status(request), &group);
      const bool is_told = group == MPI_ERR_OP && *weft_gpu_error() != '\0';
      const int freed = weft_gpu_request_free(&request);
      MPI_Error_class(freed, &group);
      expect(is_told && group == MPI_ERR_OP && !request,
             std::string("not told of a failure: ") + weft_gpu_error());
    }
    MPI_Comm_free(&its);
  }
  MPI_Comm_free(&own);
}

// No rank has prepared the collective after this failure, so that the next collectives match.
static void one_rank_cannot_prepare(MPI_Datatype spread) {
  MPI_Comm own;
  MPI_Comm_dup(world, &own);
  const bool fails = rank == 1;
  Buffer data(std::vector<int>(20), fails ? kDevice : kProcessor);
  weft_gpu_request request = nullptr;
  expect_refusal(weft_bcast_init(data.data(), 10, spread, 0, own, &request),
                 fails ? "holes" : "another rank cannot prepare this collective");
  good(weft_bcast_init(data.data(), 10, MPI_INT, 0, own, &request), "init");
  good(weft_run_enqueue(request, stream), "run");
  good(cuStreamSynchronize(stream), "synchronize");
  good(weft_gpu_request_free(&request), "free");
  MPI_Comm_free(&own);
}

void refusals() {
  weft_gpu_request request = nullptr;
  Buffer device(filled(100, 1, 1), kDevice);
  expect_refusal(weft_wait_enqueue(nullptr, stream), "there is no request");
  expect_refusal(weft_gpu_request_free(&request), "there is no request");
  expect_refusal(weft_reduce_local_enqueue(device.data(), device.data(), 1, WEFT_GPU_HALF,
                                           WEFT_GPU_BAND, stream),
                 "no such operator");
  expect_refusal(weft_gpu_request_status(nullptr), "there is no request");
  good(weft_barrier_init(world, &request), "init");
  expect_refusal(weft_gpu_flags_of(request, nullptr), "there is no place for the flags");
  good(weft_gpu_request_free(&request), "free");
  expect_refusal(
      weft_iallreduce_enqueue(MPI_IN_PLACE, device.data(), 1, weft_gpu_datatype(WEFT_GPU_HALF),
                              MPI_BAND, world, stream, &request),
      "half and bfloat16 have no such operator");
  // The request is freed at once. The collective is still in flight in MPI_Finalize, which waits
  // for it.
  if (standin::add_kernel) delay_stream();
  good(weft_ibarrier_enqueue(world, stream, &request), "barrier");
  expect_refusal(weft_start_enqueue(request, stream), "only a persistent collective");
  good(weft_gpu_request_free(&request), "free");
  MPI_Datatype spread;
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread);
  MPI_Type_commit(&spread);
  MPI_Comm own;
  MPI_Comm_dup(world, &own);
  expect_refusal(weft_ibcast_enqueue(device.data(), 10, spread, 0, own, stream, &request), "holes");
  expect_refusal(weft_ibarrier_enqueue(own, stream, &request), "an earlier collective");
  MPI_Comm_free(&own);
  one_rank_cannot_prepare(spread);
  MPI_Type_free(&spread);
}

}  // namespace streams

// Replaces the MPI library's function. All ranks have called it, and it fails on one rank.
extern "C" int MPI_Scan_init(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  using Next = int(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info, MPI_Request*);
  static auto* const next = reinterpret_cast<Next*>(dlsym(RTLD_NEXT, "MPI_Scan_init"));
  const int code = next(from, to, count, type, op, comm, info, request);
  if (!streams::init_fails) return code;
  MPI_Request_free(request);
  return MPI_ERR_NO_MEM;
}
