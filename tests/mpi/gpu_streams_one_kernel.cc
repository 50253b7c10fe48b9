// Collectives of kernels alone: if a rank cannot use them, if many are in flight, and beside other
// work.
#include <cstdlib>
#include <functional>
#include <memory>

#include "gpu_streams.h"

namespace streams {
namespace {

// The sum does not run in kernels alone, for rank 1's reason, of which all ranks are told. The sum
// is right. before: called with the data on rank 1 before the sum is prepared.
void expect_sum_by_mpi(MPI_Comm comm, std::size_t count, const std::string& reason,
                       const std::function<void(Buffer&)>& before = {}) {
  Buffer data(std::vector<int>(count, rank + 1), kDevice);
  if (before && rank == 1) before(data);
  weft_gpu_request request = nullptr;
  good(weft_allreduce_init(MPI_IN_PLACE, data.data(), static_cast<int>(count), MPI_INT, MPI_SUM,
                           comm, &request),
       "init");
  const std::string way = "by calls of MPI's, not in one kernel: rank 1: " + reason;
  expect_way(weft_gpu_path_of(request), way.c_str());
  good(weft_run_enqueue(request, stream), "run");
  good(cuStreamSynchronize(stream), "synchronize");
  expect(data.content() == std::vector<int>(count, ranks * (ranks + 1) / 2),
         "a sum by calls of MPI's");
  good(weft_gpu_request_free(&request), "free");
}

}  // namespace

// One rank cannot create an event for a collective in one kernel. The test must precede all others,
// whose events would be used again.
void one_rank_has_no_event() {
  if (!standin::fail) return;
  MPI_Comm own;
  MPI_Comm_dup(world, &own);
  expect_sum_by_mpi(own, 5, "cuEventCreate: CUDA_ERROR_OUT_OF",
                    [](Buffer&) { standin::fail("cuEventCreate", 1, 2); });
  MPI_Comm_free(&own);
}

void one_rank_has_memory_of_another_device() {
  if (!standin::move) return;
  for (const std::size_t count : {5, 100'000}) {
    expect_sum_by_mpi(world, count, "the data are in memory of another device", [](Buffer& data) {
      constexpr int kNobodys = 1000;
      standin::move(data.data(), kNobodys);
    });
  }
}

// A kernel cannot be launched on one rank while the ranks measure forms. All ranks leave the sum to
// MPI, and can go on.
void one_rank_cannot_measure() {
  if (!standin::fail || std::getenv("WEFT_INIT_BUDGET")) return;
  constexpr int kInts = 777;
  MPI_Comm own;
  MPI_Comm_dup(world, &own);
  for (const bool fails : {true, false}) {
    Buffer data(std::vector<int>(kInts, rank), kDevice);
    weft_gpu_request request = nullptr;
    if (fails && rank == 1) standin::fail("cuLaunchKernel", 1, 2);
    good(weft_allreduce_init(MPI_IN_PLACE, data.data(), kInts, MPI_INT, MPI_SUM, own, &request),
         "init");
    const std::string why = rank == 1 ? "cuLaunchKernel: CUDA_ERROR_OUT_OF" : "";
    const std::string way = "by calls of MPI's, not in one kernel: " + why;
    expect_way(weft_gpu_path_of(request), fails ? way : "in ");
    good(weft_run_enqueue(request, stream), "run");
    good(cuStreamSynchronize(stream), "synchronize");
    expect(data.content() == std::vector<int>(kInts, ranks * (ranks - 1) / 2),
           "a sum that could not be measured");
    good(weft_gpu_request_free(&request), "free");
  }
  MPI_Comm_free(&own);
}

// The length differs from that of all other collectives, whose memory would be used again.
void one_rank_has_no_memory() {
  if (!standin::fail) return;
  expect_sum_by_mpi(world, 1'234'567, "cuMemAlloc: CUDA_ERROR_OUT_OF",
                    [](Buffer&) { standin::fail("cuMemAlloc", 1, 2); });
}

// Many collectives, one after the other so that spots are used again, and several in flight at
// once.
void many_in_one_kernel() {
  constexpr int kAtATime = 20, kRounds = 5;  // more than there are spots
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::unique_ptr<Buffer>> all;
    std::vector<weft_gpu_request> requests(kAtATime);
    for (int i = 0; i < kAtATime; ++i) {
      all.push_back(std::make_unique<Buffer>(std::vector<int>(3000, rank + i), kDevice));
      good(weft_allreduce_init(MPI_IN_PLACE, all.back()->data(), 3000, MPI_INT, MPI_SUM, world,
                               &requests[static_cast<std::size_t>(i)]),
           "init");
    }
    for (int i = 0; i < kAtATime; ++i) {  // each rank starts them in an order of its own
      const auto one = static_cast<std::size_t>((i * 7 + rank * 3) % kAtATime);
      good(weft_start_enqueue(requests[one], stream), "start");
    }
    for (weft_gpu_request& one : requests) good(weft_wait_enqueue(one, stream), "wait");
    for (weft_gpu_request& one : requests) good(weft_gpu_request_free(&one), "free");
    good(cuStreamSynchronize(stream), "synchronize");
    for (int i = 0; i < kAtATime; ++i) {
      const int sum = ranks * (ranks - 1) / 2 + i * ranks;
      expect(all[static_cast<std::size_t>(i)]->content() == std::vector<int>(3000, sum),
             "allreduce " + std::to_string(i) + " of many");
    }
  }
}

// Two collectives are in flight at a time. All ranks have started both, and wait for them in
// different orders.
void waited_for_in_other_orders() {
  for (const std::size_t bytes : {256 << 10, 600 << 10}) {
    const std::size_t count = bytes / sizeof(int);
    Buffer first(std::vector<int>(count, rank), kDevice);
    Buffer second(std::vector<int>(count, rank + 1), kDevice);
    Buffer* const data[] = {&first, &second};
    weft_gpu_request both[2] = {};
    for (int i = 0; i < 2; ++i) {
      good(weft_allreduce_init(MPI_IN_PLACE, data[i]->data(), static_cast<int>(count), MPI_INT,
                               MPI_SUM, world, &both[i]),
           "init");
    }
    for (weft_gpu_request one : both) good(weft_start_enqueue(one, stream), "start");
    for (int i = 0; i < 2; ++i) good(weft_wait_enqueue(both[(i + rank) % 2], stream), "wait");
    for (weft_gpu_request& one : both) good(weft_gpu_request_free(&one), "free");
    good(cuStreamSynchronize(stream), "synchronize");
    const int sum = ranks * (ranks - 1) / 2;
    expect(first.content() == std::vector<int>(count, sum) &&
               second.content() == std::vector<int>(count, sum + ranks),
           "waited for in other orders, " + std::to_string(bytes) + " bytes");
  }
}

// A collective of more bytes than an int can count, which is never started.
void a_huge_type() {
  MPI_Datatype huge;
  MPI_Type_contiguous(1 << 30, MPI_INT, &huge);
  MPI_Type_commit(&huge);
  int one = 0;
  weft_gpu_request request = nullptr;
  good(weft_allgather_init(MPI_IN_PLACE, 0, MPI_INT, &one, 1, huge, world, &request), "init");
  expect_way(weft_gpu_path_of(request),
             "by calls of MPI's, not in one kernel: it has more than 33554432 bytes");
  good(weft_gpu_request_free(&request), "free");
  MPI_Type_free(&huge);
}

// One rank's stream is late, so that its collective starts while another collective is being
// prepared. On the other ranks it starts before.
void prepared_beside_a_late_stream() {
  if (!standin::add_kernel) return;
  MPI_Comm own;
  MPI_Comm_dup(world, &own);
  Buffer sum(std::vector<int>(100, rank), kProcessor), most(std::vector<int>(7, rank), kProcessor);
  weft_gpu_request early = nullptr, prepared = nullptr;
  // In the second round, Weft's communicators already exist.
  for (int round = 0; round < 2; ++round) {
    if (rank == 0) delay_stream();
    good(weft_iallreduce_enqueue(MPI_IN_PLACE, sum.data(), 100, MPI_INT, MPI_SUM, own, stream,
                                 &early),
         "enqueue");
    if (rank != 0) pause(50);
    good(weft_allreduce_init(MPI_IN_PLACE, most.data(), 7, MPI_INT, MPI_MAX, own, &prepared),
         "init");
    good(weft_run_enqueue(prepared, stream), "run");
    good(weft_wait_enqueue(early, stream), "wait");
    good(weft_gpu_request_free(&early), "free");
    good(weft_gpu_request_free(&prepared), "free");
    good(cuStreamSynchronize(stream), "synchronize");
  }
  const int right = ranks * ranks * (ranks - 1) / 2;
  expect(sum.content() == std::vector<int>(100, right) &&
             most.content() == std::vector<int>(7, ranks - 1),
         "prepared beside a late stream");
  MPI_Comm_free(&own);
}

// A capture of one stream must not capture what is meanwhile enqueued in another stream, nor
// prevent it.
void enqueued_beside_a_capture() {
  MPI_Comm own;
  MPI_Comm_dup(world, &own);
  Stream other = nullptr;
  good(cuStreamCreate(&other, 1), "stream");
  for (const std::size_t count : {5, 300'000}) {
    const int n = static_cast<int>(count), sum = ranks * (ranks - 1) / 2;
    Buffer captured(std::vector<int>(count, rank), kDevice);
    Buffer beside(std::vector<int>(count, rank + 1), kDevice);
    weft_gpu_request inside = nullptr, outside = nullptr;
    void *graph = nullptr, *exec = nullptr;
    good(cuStreamBeginCapture_v2(stream, 0), "capture");
    good(weft_iallreduce_enqueue(MPI_IN_PLACE, captured.data(), n, MPI_INT, MPI_SUM, own, stream,
                                 &inside),
         "enqueue");
    good(weft_iallreduce_enqueue(MPI_IN_PLACE, beside.data(), n, MPI_INT, MPI_SUM, own, other,
                                 &outside),
         "enqueue");
    expect_refusal(weft_wait_enqueue(outside, stream), "outside of a capture");
    good(weft_wait_enqueue(outside, other), "wait");
    good(weft_wait_enqueue(inside, stream), "wait");
    good(cuStreamEndCapture(stream, &graph), "end of capture");
    good(weft_gpu_request_free(&outside), "free");
    good(weft_gpu_request_free(&inside), "free");
    good(cuStreamSynchronize(other), "synchronize");
    expect(beside.content() == std::vector<int>(count, sum + ranks), "beside a capture");
    good(cuGraphInstantiateWithFlags(&exec, graph, 0), "instantiate");
    for (int i = 0; i < 2; ++i) good(cuGraphLaunch(exec, stream), "launch");
    good(cuStreamSynchronize(stream), "synchronize");
    expect(captured.content() == std::vector<int>(count, sum * ranks), "captured beside another");
    good(cuGraphExecDestroy(exec), "destroy");
    good(cuGraphDestroy(graph), "destroy");
  }
  MPI_Comm_free(&own);
}

// One rank cannot share its memory.
void one_rank_is_refused() {
  if (!standin::fail) return;
  constexpr int kUnsupported = 801;
  MPI_Comm own;
  MPI_Comm_dup(world, &own);
  expect_sum_by_mpi(own, 5, "cuIpcGetMemHandle",
                    [](Buffer&) { standin::fail("cuIpcGetMemHandle", 1, kUnsupported); });
  MPI_Comm_free(&own);
}

// A kernel of one rank has failed, so that nothing can run on its device any more. This rank gets
// an error, and the other ranks continue.
void one_rank_is_lost() {
  if (!standin::fail) return;
  MPI_Comm own;
  MPI_Comm_dup(world, &own);
  Buffer data(std::vector<int>(5, rank + 1), kDevice);
  weft_gpu_request request = nullptr;
  good(weft_allreduce_init(MPI_IN_PLACE, data.data(), 5, MPI_INT, MPI_SUM, own, &request), "init");
  expect_way(weft_gpu_path_of(request), "in one kernel");
  if (rank == 1) {
    launch("standin_fault");
    while (cuStreamSynchronize(stream) == 0) continue;
    expect_refusal(weft_run_enqueue(request, stream), "CUDA_ERROR_ILLEGAL_ADDRESS");
  } else {
    good(weft_run_enqueue(request, stream), "run");
    good(cuStreamSynchronize(stream), "synchronize");
    expect_refusal(weft_run_enqueue(request, stream), "was given up");
  }
  const char* const why = rank == 1 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "was given up";
  expect_refusal(weft_gpu_request_status(request), why);
  if (rank == 1) standin::forget_errors();
  expect_refusal(weft_gpu_request_free(&request), why);
  MPI_Comm_free(&own);
}

}  // namespace streams
