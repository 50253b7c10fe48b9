// Persistent collectives by NCCL, which must give what the MPI library computes from the same data
// in ordinary memory. This is an ordinary MPI program:
//   gpu_nccl DRIVER says TEXT   an allreduce whose path contains TEXT on all ranks; of NUMBERS
//                               numbers if a further word says so
//   gpu_nccl DRIVER all         every collective, in streams and in graphs, and what may go wrong;
//                               with WEFT_GPU_NCCL=on
//   gpu_nccl DRIVER lifetimes   graphs and streams that outlive or do not outlive a communicator,
//                               MPI and a collective, whichever way collectives travel
//   gpu_nccl DRIVER measures    a call fails while two ways are measured; with WEFT_GPU_NCCL=auto
//   gpu_nccl DRIVER end         a rank's call fails, so that the others' collective never ends
// DRIVER is the stand-in of tests/device.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu_standin.h"
#include "weft_gpu.h"

namespace {

using namespace gpu::driver;

constexpr int kOutOfMemory = 2, kSystemError = 2;
const std::string kByNccl = "by NCCL 2.21.5, ";

int rank = 0, ranks = 1, cases = 0, failures = 0;
Stream stream = nullptr;

void expect(bool is_right, const std::string& what) {
  ++cases;
  if (is_right) return;
  ++failures;
  std::printf("rank %d: wrong: %s\n", rank, what.c_str());
  std::fflush(stdout);
}

void good(int code, const std::string& what) {
  if (code == 0) return;
  std::printf("rank %d: %s: %s\n", rank, what.c_str(), weft_gpu_error());
  std::fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void expect_refusal(int code, const std::string& sentence) {
  const std::string said = weft_gpu_error();
  expect(code != MPI_SUCCESS && said.find(sentence) != std::string::npos,
         "not refused: " + sentence + "; said is: " + said);
}

std::string path_of(weft_gpu_request request) {
  return weft_gpu_path_of(request);
}

void expect_path(weft_gpu_request request, const std::string& part) {
  expect(path_of(request).find(part) != std::string::npos,
         "it travels " + path_of(request) + "; expected: " + part);
}

std::uintptr_t address_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// Bytes in device memory.
class Buffer {
 public:
  explicit Buffer(const std::vector<char>& content) : bytes_(content.size()) {
    good(cuMemAlloc_v2(&address_, bytes_), "cuMemAlloc");
    set(content);
  }
  ~Buffer() { cuMemFree_v2(address_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return reinterpret_cast<void*>(address_); }
  void set(const std::vector<char>& content) {
    good(cuMemcpy(address_, address_of(content.data()), bytes_), "cuMemcpy");
    good(cuStreamSynchronize(nullptr), "cuStreamSynchronize");
  }
  std::vector<char> content() const {
    std::vector<char> found(bytes_);
    good(cuMemcpy(address_of(found.data()), address_, bytes_), "cuMemcpy");
    return found;
  }

 private:
  const std::size_t bytes_;
  std::uintptr_t address_ = 0;
};

template <class T>
std::vector<char> bytes_of(const std::vector<T>& values) {
  const auto* const begin = reinterpret_cast<const char*>(values.data());
  return {begin, begin + values.size() * sizeof(T)};
}

// Small whole numbers, whose sums and products every type holds.
template <class T>
std::vector<char> numbers(int count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = T((i + rank) % 3 + 1);
  return bytes_of(values);
}

// A collective with n elements of a type in a block: by MPI's blocking call, and by Weft.
struct Case {
  std::string name;
  std::function<void(const void* from, void* to)> blocking;
  std::function<int(const void* from, void* to, weft_gpu_request*)> prepare;
  int sent, received;  // numbers of elements
  bool in_place = false;
};

#define FORMS(name, Name, sent, received, in_place, ...)                                  \
  {                                                                                       \
#name, [=]([[maybe_unused]] const void* from, void* to) { MPI_##Name(__VA_ARGS__); },   \
        [=]([[maybe_unused]] const void* from, void* to, weft_gpu_request* request) {       \
          return weft_##name##_init(__VA_ARGS__, request);                                  \
        },                                                                                  \
        sent, received, in_place \
  }

std::vector<Case> reductions(int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return {
      FORMS(allreduce, Allreduce, n, n, false, from, to, n, type, op, comm),
      FORMS(allreduce, Allreduce, n, n, true, MPI_IN_PLACE, to, n, type, op, comm),
      FORMS(reduce_scatter_block, Reduce_scatter_block, n * ranks, n, false, from, to, n, type, op,
            comm),
  };
}

std::vector<Case> copies(int n, MPI_Datatype type, MPI_Comm comm) {
  const int all = n * ranks;
  return {
      FORMS(bcast, Bcast, n, n, true, to, n, type, ranks - 1, comm),
      FORMS(allgather, Allgather, n, all, false, from, n, type, to, n, type, comm),
      FORMS(allgather, Allgather, all, all, true, MPI_IN_PLACE, 0, type, to, n, type, comm),
      FORMS(alltoall, Alltoall, all, all, false, from, n, type, to, n, type, comm),
  };
}

void* graph_of(const std::function<void()>& work) {
  void *graph = nullptr, *exec = nullptr;
  good(cuStreamBeginCapture_v2(stream, 0), "capture");
  work();
  good(cuStreamEndCapture(stream, &graph), "end of capture");
  good(cuGraphInstantiateWithFlags(&exec, graph, 0), "instantiate");
  good(cuGraphDestroy(graph), "destroy");
  return exec;
}

void start(weft_gpu_request request) {
  good(weft_start_enqueue(request, stream), "start");
}
void wait(weft_gpu_request request) {
  good(weft_wait_enqueue(request, stream), "wait");
}
void launch(void* exec) {
  good(cuGraphLaunch(exec, stream), "launch");
}
void synchronise() {
  good(cuStreamSynchronize(stream), "synchronize");
}

// Runs the collective in each way, every time from the same data.
template <class T>
void run_all_ways(const Case& one) {
  const std::vector<char> sent = numbers<T>(one.sent), before = numbers<T>(one.received);
  std::vector<char> right = before;
  one.blocking(sent.data(), right.data());
  const Buffer from(sent);
  Buffer to(before);
  weft_gpu_request request = nullptr;
  good(one.prepare(from.data(), to.data(), &request), one.name);
  expect_path(request, kByNccl + "as WEFT_GPU_NCCL says");
  void* const both = graph_of([&] { start(request), wait(request); });
  void* const first = graph_of([&] { start(request); });
  void* const second = graph_of([&] { wait(request); });
  void* const whole = graph_of([&] { good(weft_run_enqueue(request, stream), "run"); });
  const std::pair<const char*, std::function<void()>> ways[] = {
      {"run", [&] { good(weft_run_enqueue(request, stream), "run"); }},
      {"started and waited for", [&] { start(request), wait(request); }},
      {"in a graph", [&] { launch(both); }},
      {"started in a graph", [&] { launch(first), wait(request); }},
      {"waited for in a graph", [&] { start(request), launch(second); }},
      {"in two graphs", [&] { launch(first), launch(second); }},
      {"run in a graph", [&] { launch(whole); }},
  };
  for (const auto& [name, run] : ways) {
    to.set(before);
    run();
    synchronise();
    expect(to.content() == right, one.name + (one.in_place ? " in place " : " ") + name);
  }
  for (void* const exec : {both, first, second, whole}) cuGraphExecDestroy(exec);
  good(weft_gpu_request_free(&request), "free");
}

template <class T>
void run_once(const Case& one) {
  const std::vector<char> sent = numbers<T>(one.sent), before = numbers<T>(one.received);
  std::vector<char> right = before;
  one.blocking(sent.data(), right.data());
  const Buffer from(sent), to(before);
  weft_gpu_request request = nullptr;
  good(one.prepare(from.data(), to.data(), &request), one.name);
  expect_path(request, kByNccl + "as WEFT_GPU_NCCL says");
  good(weft_run_enqueue(request, stream), "run");
  synchronise();
  expect(to.content() == right, one.name + (one.in_place ? " in place" : ""));
  good(weft_gpu_request_free(&request), "free");
}

template <class T>
void every_collective(MPI_Datatype type, MPI_Comm comm) {
  for (const MPI_Op op : {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX}) {
    for (const Case& one : reductions(5, type, op, comm)) run_once<T>(one);
  }
  for (const Case& one : copies(5, type, comm)) run_once<T>(one);
}

void every_way(MPI_Comm comm) {
  for (const int n : {1, 20'000}) {
    for (const Case& one : reductions(n, MPI_INT, MPI_SUM, comm)) run_all_ways<int>(one);
    for (const Case& one : copies(n, MPI_INT, comm)) run_all_ways<int>(one);
  }
}

// An allreduce of equal numbers.
struct Sum {
  const std::size_t count;
  Buffer data{bytes_of(std::vector<long>(count, rank + 1L))};
  weft_gpu_request request = nullptr;

  explicit Sum(MPI_Comm comm, int numbers = 1) : count(static_cast<std::size_t>(numbers)) {
    good(weft_allreduce_init(MPI_IN_PLACE, data.data(), numbers, MPI_LONG, MPI_SUM, comm, &request),
         "init");
  }
  ~Sum() {
    if (request) weft_gpu_request_free(&request);
  }
  void run() { good(weft_run_enqueue(request, stream), "run"); }
  // Checks the sum after so many runs.
  void expect_sum(int runs, const std::string& what) {
    synchronise();
    long right = ranks * (ranks + 1L) / 2;
    for (int i = 1; i < runs; ++i) right *= ranks;
    expect(data.content() == bytes_of(std::vector<long>(count, right)), what);
  }
};

MPI_Comm duplicate() {
  MPI_Comm made;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  return made;
}

// NCCL does not take part in these.
void what_nccl_lacks(MPI_Comm comm) {
  Buffer data(std::vector<char>(256)), other(std::vector<char>(256));
  weft_gpu_request request = nullptr;
  const auto expect_no = [&](int code, const std::string& why) {
    good(code, why);
    expect_path(request, "; not by NCCL: " + why);
    good(weft_gpu_request_free(&request), "free");
  };
  void *const one = data.data(), *const two = other.data();
  expect_no(weft_allreduce_init(one, two, 4, MPI_SHORT, MPI_SUM, comm, &request),
            "rank 0: NCCL has no reduction of this data type");
  expect_no(weft_allreduce_init(one, two, 4, MPI_INT, MPI_BAND, comm, &request),
            "rank 0: NCCL has no such reduction");
  expect_no(weft_scan_init(one, two, 4, MPI_INT, MPI_SUM, comm, &request),
            "it has no such collective");
  expect_no(weft_alltoall_init(MPI_IN_PLACE, 0, MPI_INT, two, 4, MPI_INT, comm, &request),
            "rank 0: NCCL needs a second buffer for this collective");
  std::vector<int> host(4);
  void* const where = rank == 1 ? host.data() : one;
  expect_no(weft_bcast_init(where, 4, MPI_INT, 0, comm, &request),
            "rank 1: the data are not in memory of the device");
}

// More collectives than NCCL has communicators. Each rank starts them in an order of its own.
void in_other_orders() {
  constexpr int kAll = 10, kByNcclAtMost = 8;
  const MPI_Comm comm = duplicate();
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<Sum>> all;
    for (int i = 0; i < kAll; ++i) {
      all.push_back(std::make_unique<Sum>(comm));
      expect_path(all.back()->request, i < kByNcclAtMost
                                           ? kByNccl
                                           : "; not by NCCL: all of its communicators are taken");
    }
    const auto start_all = [&](int first, int count) {
      for (int i = 0; i < count; ++i) {
        start(all[static_cast<std::size_t>(first + (i * 3 + rank) % count)]->request);
      }
      for (int i = 0; i < count; ++i) wait(all[static_cast<std::size_t>(first + i)]->request);
    };
    start_all(0, kAll);
    for (auto& one : all) one->expect_sum(1, "started in another order");
    void* const exec = graph_of([&] { start_all(0, kByNcclAtMost); });
    launch(exec);
    for (int i = 0; i < kByNcclAtMost; ++i) {
      all[static_cast<std::size_t>(i)]->expect_sum(2, "in another order in a graph");
    }
    cuGraphExecDestroy(exec);
  }
  MPI_Comm comm_to_free = comm;
  MPI_Comm_free(&comm_to_free);
}

// Work between start and wait in the same stream does not wait for the other ranks.
void work_beside_it(MPI_Comm comm) {
  standin::add_kernel("test_tells", 0, nullptr, [](void* const*) {
    MPI_Request told;
    MPI_Ibarrier(MPI_COMM_WORLD, &told);
    MPI_Wait(&told, MPI_STATUS_IGNORE);
  });
  void* kernel = nullptr;
  good(cuModuleGetFunction(&kernel, nullptr, "test_tells"), "kernel");
  const auto tell = [&] {
    good(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), "launch");
  };
  Sum sum(comm);
  // Rank 0 starts after the kernel, which waits for the other ranks' kernels behind their start.
  const auto work = [&] {
    if (rank == 0) tell();
    start(sum.request);
    if (rank != 0) tell();
    wait(sum.request);
  };
  work();
  sum.expect_sum(1, "work beside it");
  void* const exec = graph_of(work);
  launch(exec);
  sum.expect_sum(2, "work beside it in a graph");
  cuGraphExecDestroy(exec);
}

void a_graph_outlives_its_communicator(int count) {
  MPI_Comm comm = duplicate();
  auto sum = std::make_unique<Sum>(comm, count);
  weft_gpu_request request = sum->request;
  void* const exec = graph_of([&] { start(request), wait(request); });
  launch(exec);
  good(weft_gpu_request_free(&sum->request), "free");
  MPI_Comm_free(&comm);
  launch(exec);
  sum->expect_sum(2, "a graph outlives its communicator");
  cuGraphExecDestroy(exec);
}

void a_stream_is_destroyed(MPI_Comm comm, int count) {
  Sum sum(comm, count);
  Stream short_lived = nullptr;
  good(cuStreamCreate(&short_lived, 1), "stream");
  good(weft_start_enqueue(sum.request, short_lived), "start");
  good(cuStreamDestroy_v2(short_lived), "destroy");
  wait(sum.request);
  sum.expect_sum(1, "a stream is destroyed");
}

// A rank makes a communicator of NCCL's fail. The sum goes another way.
void it_cannot_be_made(const char* call, int where, const std::string& why) {
  MPI_Comm comm = duplicate();
  if (rank == where) standin::fail(call, 1, kSystemError);
  for (int i = 0; i < 2; ++i) {
    Sum sum(comm);
    expect_path(sum.request, "in one kernel; not by NCCL: " + why);
    sum.run();
    sum.expect_sum(1, call);
  }
  MPI_Comm_free(&comm);
}

// NCCL finds an error on one rank. Its communicator is not used again, on any rank.
void it_fails_later() {
  MPI_Comm comm = duplicate();
  auto sum = std::make_unique<Sum>(comm);
  sum->run();
  sum->expect_sum(1, "before it fails");
  if (rank == 1) {
    standin::fail("ncclCommGetAsyncError", 1, kSystemError);
    while (weft_gpu_request_status(sum->request) == MPI_SUCCESS) continue;
    expect_refusal(weft_run_enqueue(sum->request, stream),
                   "a collective by NCCL: unhandled system error");
    expect_refusal(weft_gpu_request_free(&sum->request), "unhandled system error");
  }
  sum.reset();
  Sum next(comm);
  expect_path(next.request, kByNccl);
  next.run();
  next.expect_sum(1, "after it has failed");
  MPI_Comm_free(&comm);
}

void it_is_started_again(MPI_Comm comm) {
  // It stays, since nothing waits for the second start.
  Sum& sum = *new Sum(comm);
  start(sum.request);
  wait(sum.request);
  weft_gpu_flags flags;
  expect_refusal(weft_gpu_flags_of(sum.request, &flags), "NCCL carries this collective out");
  sum.expect_sum(1, "started once");
  start(sum.request);
  expect_refusal(weft_start_enqueue(sum.request, stream), "started again before");
  expect_refusal(weft_gpu_request_free(&sum.request), "started again before");
}

// Sums of ones are exact in half and bfloat16.
void short_floats(MPI_Comm comm) {
  using Bits = std::vector<unsigned short>;
  const struct {
    weft_gpu_type type;
    unsigned short ones, two, three;
  } all[] = {{WEFT_GPU_HALF, 0x3c00, 0x4000, 0x4200}, {WEFT_GPU_BFLOAT16, 0x3f80, 0x4000, 0x4040}};
  for (const auto& [type, ones, two, three] : all) {
    Buffer data(bytes_of(Bits(100, ones)));
    weft_gpu_request request = nullptr;
    good(weft_allreduce_init(MPI_IN_PLACE, data.data(), 100, weft_gpu_datatype(type), MPI_SUM, comm,
                             &request),
         "init");
    expect_path(request, kByNccl);
    good(weft_run_enqueue(request, stream), "run");
    synchronise();
    const unsigned short right = ranks == 2 ? two : three;
    expect(ranks > 3 || data.content() == bytes_of(Bits(100, right)), "ones of 16 bits");
    good(weft_gpu_request_free(&request), "free");
  }
}

void all() {
  MPI_Comm comm = duplicate();
  every_way(comm);
  every_collective<int>(MPI_INT, comm);
  every_collective<unsigned>(MPI_UNSIGNED, comm);
  every_collective<long>(MPI_LONG, comm);
  every_collective<unsigned long>(MPI_UNSIGNED_LONG, comm);
  every_collective<signed char>(MPI_SIGNED_CHAR, comm);
  every_collective<unsigned char>(MPI_UNSIGNED_CHAR, comm);
  every_collective<float>(MPI_FLOAT, comm);
  every_collective<double>(MPI_DOUBLE, comm);
  short_floats(comm);
  what_nccl_lacks(comm);
  work_beside_it(comm);
  a_stream_is_destroyed(comm, 1);
  it_is_started_again(comm);
  MPI_Comm_free(&comm);
  in_other_orders();
  a_graph_outlives_its_communicator(1);
  it_cannot_be_made("ncclGetUniqueId", 0, "rank 0: ncclGetUniqueId: unhandled system error");
  it_cannot_be_made("ncclCommInitRank", 1, "rank ");
  it_fails_later();
}

// All ranks must have the same path, with the same times. The user's data do not change before the
// first start.
void says(const std::string& part, int numbers) {
  MPI_Comm comm = duplicate();
  Sum sum(comm, numbers);
  expect_path(sum.request, part);
  char mine[512] = "", first[512] = "";
  std::snprintf(mine, sizeof mine, "%s", weft_gpu_path_of(sum.request));
  std::copy(std::begin(mine), std::end(mine), std::begin(first));
  MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
  expect(std::string(mine) == first, std::string("the ranks differ: ") + mine + "; " + first);
  expect(sum.data.content() == bytes_of(std::vector<long>(sum.count, rank + 1L)),
         "data before the start");
  sum.run();
  sum.expect_sum(1, "a sum");
  MPI_Comm_free(&comm);
}

// The nth call of this name fails on rank 1 while two ways are measured, or earlier, or not at all.
// All ranks get an error or none. Later collectives are right.
void one_fails(const char* call, int nth) {
  MPI_Comm comm = duplicate();
  Buffer data(bytes_of(std::vector<long>{rank + 1L}));
  weft_gpu_request request = nullptr;
  if (rank == 1) standin::fail(call, nth, kOutOfMemory);
  int made = weft_allreduce_init(MPI_IN_PLACE, data.data(), 1, MPI_LONG, MPI_SUM, comm, &request) ==
             MPI_SUCCESS;
  if (rank == 1) standin::forget_errors();
  int all[2] = {made, -made};
  MPI_Allreduce(MPI_IN_PLACE, all, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  expect(all[0] == -all[1], std::string("only some ranks are refused: ") + call);
  if (made) good(weft_gpu_request_free(&request), "free");
  Sum sum(comm);
  sum.run();
  sum.expect_sum(1, std::string("after a failure of ") + call);
  MPI_Comm_free(&comm);
}

void measures() {
  for (const char* const call :
       {"cuLaunchKernel", "ncclAllReduce", "cuEventRecord", "cuMemAlloc", "cuStreamCreate",
        "cuEventCreate", "cuEventElapsedTime", "cuStreamSynchronize"}) {
    for (const int nth : {1, 2, 4, 7}) one_fails(call, nth);
  }
}

// A graph whose communicator is freed, and which is launched after MPI_Finalize, too.
void* graph_for_the_end = nullptr;

void lifetimes() {
  for (const int count : {1, 100'000}) {
    a_graph_outlives_its_communicator(count);
    a_stream_is_destroyed(MPI_COMM_WORLD, count);
  }
  static Sum& sum = *new Sum(MPI_COMM_WORLD);
  graph_for_the_end = graph_of([&] { start(sum.request), wait(sum.request); });
  launch(graph_for_the_end);
  sum.expect_sum(1, "a graph before the end");
}

// The stream of each rank must go on after MPI_Finalize.
void begin_what_never_ends() {
  static Sum& sum = *new Sum(MPI_COMM_WORLD);
  if (rank == 1) standin::fail("ncclAllReduce", 1, kSystemError);
  const int code = weft_run_enqueue(sum.request, stream);
  if (rank == 1) expect_refusal(code, "ncclAllReduce: unhandled system error");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || !standin::load_driver(argv[1]) || !standin::fail) {
    std::fprintf(
        stderr,
        "usage: gpu_nccl STAND-IN says TEXT [NUMBERS] | all | lifetimes | measures | end\n");
    return 2;
  }
  standin::begin(&argc, &argv, &rank, &ranks);
  good(cuStreamCreate(&stream, 1), "stream");
  const std::string what = argv[2];
  if (what == "says") says(argc > 3 ? argv[3] : "", argc > 4 ? std::atoi(argv[4]) : 1);
  if (what == "all") all();
  if (what == "lifetimes") lifetimes();
  if (what == "measures") measures();
  if (what == "end") begin_what_never_ends();
  int wrong = failures;
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  if (graph_for_the_end) launch(graph_for_the_end);
  const bool goes_on = cuStreamSynchronize(stream) == 0;
  if (rank == 0 && wrong == 0 && goes_on) std::printf("%d cases right\n", cases);
  return wrong > 0 || !goes_on;
}
