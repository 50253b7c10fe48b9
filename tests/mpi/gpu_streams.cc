// Every collective in a stream, on memory of a device that the processor cannot touch, on memory of
// the processor's, on both at once, and on managed memory: enqueued, persistent, and in a graph
// that is launched twice. Short allreduces, allgathers and broadcasts on memory of the device go in
// one kernel, unless a rank cannot. An ordinary MPI program: `gpu_streams DRIVER [WAY]`, where
// DRIVER is the stand-in of tests/device, or libcuda.so.1 on a machine with a GPU. WAY, where they
// must not go in one kernel, is what weft_gpu_path_of begins with then. What must come out is what
// the MPI library makes of the same data in ordinary memory. Needs two ranks or more; three, for
// its ring.
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu_standin.h"
#include "weft_gpu.h"

namespace {

using namespace gpu::driver;

int failures = 0, cases = 0, rank = 0, ranks = 1;
const char* expected_way = nullptr;  // of persistent ones that a kernel carries out
MPI_Comm world, ring;
Stream stream;

void good(int code, const char* what) {
  if (code == 0) return;
  std::printf("rank %d: %s: %s\n", rank, what, weft_gpu_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

std::uintptr_t address_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

enum Where { kProcessor, kDevice, kManaged };

// Ints of the device's, of the processor's, or of both.
class Buffer {
 public:
  Buffer(const std::vector<int>& content, Where where) : host_(content) {
    if (where == kProcessor) return;
    constexpr unsigned kGlobal = 1;
    good(where == kDevice ? cuMemAlloc_v2(&device_, bytes())
                          : cuMemAllocManaged(&device_, bytes(), kGlobal),
         "cuMemAlloc");
    good(cuMemcpy(device_, address_of(host_.data()), bytes()), "cuMemcpy");
  }
  ~Buffer() {
    if (device_) cuMemFree_v2(device_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  int* data() { return device_ ? reinterpret_cast<int*>(device_) : host_.data(); }
  std::vector<int> content() {
    if (device_) good(cuMemcpy(address_of(host_.data()), device_, bytes()), "cuMemcpy");
    return host_;
  }

 private:
  std::size_t bytes() const { return host_.size() * sizeof(int); }

  std::vector<int> host_;
  std::uintptr_t device_ = 0;
};

// Numbers of a collective, for `n` ints in a block.
constexpr int kMost = 16;
struct Numbers {
  int n;
  int counts[kMost], uneven[kMost], at[kMost], bytes_at[kMost];
  MPI_Aint far_at[kMost];
  MPI_Datatype ints[kMost];
};

// Blocks in reverse order, between which one int is left as it is.
Numbers numbers(int n, int blocks) {
  Numbers made{};
  made.n = n;
  for (int i = 0; i < blocks; ++i) {
    made.counts[i] = n - 1;
    made.uneven[i] = n - 1 - i * n / kMost;
    made.at[i] = (blocks - 1 - i) * n;
    made.bytes_at[i] = made.at[i] * static_cast<int>(sizeof(int));
    made.far_at[i] = made.bytes_at[i];
    made.ints[i] = MPI_INT;
  }
  return made;
}

struct Case {
  const char* name;
  std::function<void(const Numbers&, const int* from, int* to)> blocking;
  std::function<int(const Numbers&, const int*from, int*to, weft_gpu_request*)> enqueue, prepare;
};

#define FORMS(Name, name, ...)                                                                  \
  Case {                                                                                        \
#Name, []([[maybe_unused]] const Numbers& m, [[maybe_unused]] const int* from,                \
              [[maybe_unused]] int* to) { MPI_##Name(__VA_ARGS__); },                             \
        []([[maybe_unused]] const Numbers& m, [[maybe_unused]] const int* from,                   \
           [[maybe_unused]] int* to,                                                              \
           weft_gpu_request* request) { return weft_i##name##_enqueue(__VA_ARGS__, stream, request); }, \
        []([[maybe_unused]] const Numbers& m, [[maybe_unused]] const int* from,                   \
           [[maybe_unused]] int* to,                                                              \
           weft_gpu_request* request) { return weft_##name##_init(__VA_ARGS__, request); } \
  }

const std::vector<Case>& all_cases() {
  static const std::vector<Case> all = {
      FORMS(Barrier, barrier, world),
      FORMS(Bcast, bcast, to, m.n, MPI_INT, 1, world),
      FORMS(Reduce, reduce, from, to, m.n, MPI_INT, MPI_MAX, ranks - 1, world),
      FORMS(Allreduce, allreduce, from, to, m.n, MPI_INT, MPI_SUM, world),
      FORMS(Allreduce, allreduce, MPI_IN_PLACE, to, m.n, MPI_INT, MPI_SUM, world),
      FORMS(Allreduce, allreduce, from, to, m.n, MPI_INTEGER, MPI_MIN, world),
      FORMS(Scan, scan, from, to, m.n, MPI_INT, MPI_SUM, world),
      FORMS(Exscan, exscan, from, to, m.n, MPI_INT, MPI_SUM, world),
      FORMS(Reduce_scatter_block, reduce_scatter_block, from, to, m.n, MPI_INT, MPI_SUM, world),
      FORMS(Reduce_scatter, reduce_scatter, from, to, m.uneven, MPI_INT, MPI_SUM, world),
      FORMS(Gather, gather, from, m.n, MPI_INT, to, m.n, MPI_INT, 1, world),
      FORMS(Gather, gather, rank == 1 ? MPI_IN_PLACE : from, m.n, MPI_INT, to, m.n, MPI_INT, 1,
            world),
      FORMS(Gatherv, gatherv, from, m.n - 1, MPI_INT, to, m.counts, m.at, MPI_INT, 0, world),
      FORMS(Scatter, scatter, from, m.n, MPI_INT, to, m.n, MPI_INT, 1, world),
      FORMS(Scatter, scatter, from, m.n, MPI_INT, rank == 1 ? MPI_IN_PLACE : to, m.n, MPI_INT, 1,
            world),
      FORMS(Scatterv, scatterv, from, m.counts, m.at, MPI_INT, to, m.n - 1, MPI_INT, 0, world),
      FORMS(Allgather, allgather, from, m.n, MPI_INT, to, m.n, MPI_INT, world),
      FORMS(Allgather, allgather, MPI_IN_PLACE, 0, MPI_INT, to, m.n, MPI_INT, world),
      FORMS(Allgatherv, allgatherv, from, m.uneven[rank], MPI_INT, to, m.uneven, m.at, MPI_INT,
            world),
      FORMS(Allgatherv, allgatherv, MPI_IN_PLACE, 0, MPI_INT, to, m.uneven, m.at, MPI_INT, world),
      FORMS(Alltoall, alltoall, from, m.n, MPI_INT, to, m.n, MPI_INT, world),
      FORMS(Alltoall, alltoall, MPI_IN_PLACE, 0, MPI_INT, to, m.n, MPI_INT, world),
      FORMS(Alltoallv, alltoallv, from, m.counts, m.at, MPI_INT, to, m.counts, m.at, MPI_INT,
            world),
      FORMS(Alltoallw, alltoallw, from, m.counts, m.bytes_at, m.ints, to, m.counts, m.bytes_at,
            m.ints, world),
      FORMS(Neighbor_allgather, neighbor_allgather, from, m.n, MPI_INT, to, m.n, MPI_INT, ring),
      FORMS(Neighbor_allgatherv, neighbor_allgatherv, from, m.n - 1, MPI_INT, to, m.counts, m.at,
            MPI_INT, ring),
      FORMS(Neighbor_alltoall, neighbor_alltoall, from, m.n, MPI_INT, to, m.n, MPI_INT, ring),
      FORMS(Neighbor_alltoallv, neighbor_alltoallv, from, m.counts, m.at, MPI_INT, to, m.counts,
            m.at, MPI_INT, ring),
      FORMS(Neighbor_alltoallw, neighbor_alltoallw, from, m.counts, m.far_at, m.ints, to, m.counts,
            m.far_at, m.ints, ring),
  };
  return all;
}

std::vector<int> filled(int n, int seed) {
  std::vector<int> content(static_cast<std::size_t>(n) *
                           static_cast<std::size_t>(std::max(ranks, 2)));
  for (std::size_t i = 0; i < content.size(); ++i) {
    content[i] = static_cast<int>(i * 7) + seed * 1000 + rank * 31;
  }
  return content;
}

void check(const Case& one, const char* form, int n, Buffer& to, std::vector<int> right) {
  ++cases;
  std::vector<int> found = to.content();
  // What MPI leaves undefined.
  if (std::string(one.name) == "Exscan" && rank == 0) found = right;
  if (found == right) return;
  ++failures;
  std::printf("rank %d: wrong: %s, %s, %d ints\n", rank, one.name, form, n);
}

bool has_a_kernel(const Case& one) {
  const std::string name = one.name;
  return name == "Allreduce" || name == "Allgather" || name == "Bcast";
}

// found: of weft_gpu_path_of.
void expect_way(const std::string& found, const std::string& way) {
  ++cases;
  if (found.rfind(way, 0) == 0) return;
  ++failures;
  std::printf("rank %d: it travels %s; expected: %s\n", rank, found.c_str(), way.c_str());
}

void run(const Case& one, int n, Where from_device, Where to_device) {
  const bool beside = std::string(one.name).rfind("Neighbor", 0) == 0;
  auto m = numbers(n, beside ? 2 : ranks);
  std::vector<int> once = filled(n, 2);
  one.blocking(m, filled(n, 1).data(), once.data());
  std::vector<int> twice = once;
  one.blocking(m, filled(n, 1).data(), twice.data());

  Buffer from(filled(n, 1), from_device);
  weft_gpu_request request = nullptr;
  {
    Buffer to(filled(n, 2), to_device);
    auto gone = m;
    good(one.enqueue(gone, from.data(), to.data(), &request), one.name);
    gone = {};  // its arrays have been copied
    good(weft_wait_enqueue(request, stream), "wait");
    good(weft_gpu_request_free(&request), "free");
    good(cuStreamSynchronize(stream), "synchronize");
    check(one, "enqueued", n, to, once);
  }
  {
    Buffer to(filled(n, 2), to_device);
    good(one.prepare(m, from.data(), to.data(), &request), one.name);
    if (has_a_kernel(one) && expected_way) expect_way(weft_gpu_path_of(request), expected_way);
    good(weft_start_enqueue(request, stream), "start");
    good(weft_wait_enqueue(request, stream), "wait");
    good(weft_run_enqueue(request, stream), "run");
    good(weft_gpu_request_free(&request), "free");
    good(cuStreamSynchronize(stream), "synchronize");
    check(one, "persistent", n, to, twice);
  }
  Buffer to(filled(n, 2), to_device);
  void *graph = nullptr, *exec = nullptr;
  good(cuStreamBeginCapture_v2(stream, 0), "capture");
  good(one.enqueue(m, from.data(), to.data(), &request), one.name);
  good(weft_wait_enqueue(request, stream), "wait");
  good(cuStreamEndCapture(stream, &graph), "end of capture");
  good(weft_gpu_request_free(&request), "free");
  good(cuGraphInstantiateWithFlags(&exec, graph, 0), "instantiate");
  good(cuGraphDestroy(graph), "destroy");
  for (int i = 0; i < 2; ++i) good(cuGraphLaunch(exec, stream), "launch");
  good(cuGraphExecDestroy(exec), "destroy");
  good(cuStreamSynchronize(stream), "synchronize");
  check(one, "in a graph", n, to, twice);
}

// Of a device where the processor may not touch it while a kernel runs.
void managed_memory_that_is_not_shared() {
  if (!standin::set_attribute) return;
  constexpr int kConcurrentManagedAccess = 89;
  standin::set_attribute(kConcurrentManagedAccess, 0);
  for (const Case& one : all_cases()) {
    expected_way = nullptr;
    run(one, 1000, kManaged, kManaged);
  }
  standin::set_attribute(kConcurrentManagedAccess, 1);
}

bool travels_in_parts(const Case& one) {
  const std::string name = one.name;
  for (const char* other :
       {"Bcast", "Reduce", "Allreduce", "Exscan", "Reduce_scatter_block", "Reduce_scatter",
        "Gather", "Scatter", "Allgather", "Allgatherv", "Alltoall"}) {
    if (name == other) return true;
  }
  return false;
}

// Of more than 32 MiB: their parts take turns on a few places.
void parts_that_take_turns() {
  expected_way = nullptr;
  std::string before;
  for (const Case& one : all_cases()) {
    const std::string name = std::exchange(before, one.name) == one.name ? "" : one.name;
    const Where where = rank % 2 == 0 ? kDevice : kProcessor;
    if (name == "Allreduce") run(one, 8'500'000, where, kDevice);
    if (name == "Allgather" || name == "Alltoall") run(one, 8'500'000 / ranks, kDevice, where);
  }
}

// Behind the result the buffer is undefined.
void blocks_are_reduced_in_place() {
  for (const int n : {1000, 300'000}) {
    std::vector<int> content(static_cast<std::size_t>(n) * static_cast<std::size_t>(ranks));
    for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<int>(i) + rank;
    Buffer data(content, kDevice);
    weft_gpu_request request = nullptr;
    good(weft_ireduce_scatter_block_enqueue(MPI_IN_PLACE, data.data(), n, MPI_INT, MPI_MAX, world,
                                            stream, &request),
         "reduce_scatter_block");
    good(weft_wait_enqueue(request, stream), "wait");
    good(weft_gpu_request_free(&request), "free");
    good(cuStreamSynchronize(stream), "synchronize");
    std::vector<int> found = data.content(), right(static_cast<std::size_t>(n));
    found.resize(right.size());
    std::iota(right.begin(), right.end(), rank * n + ranks - 1);
    ++cases;
    if (found == right) continue;
    ++failures;
    std::printf("rank %d: wrong: blocks of %d ints reduced in place\n", rank, n);
  }
}

// What long ones pin, one after the other; before them nothing was.
void pinned_memory_is_bounded() {
  if (!standin::pinned) return;
  constexpr int kInts = 10'000'000;
  const int n = kInts / ranks;
  auto m = numbers(n, ranks);
  for (int i = 0; i < ranks; ++i) m.at[i] = i * n;
  const std::size_t before = standin::pinned();
  const auto check = [&](const char* name, const auto& enqueue, const auto& right) {
    Buffer from(std::vector<int>(kInts, rank), kDevice), to(std::vector<int>(kInts, -1), kDevice);
    weft_gpu_request request = nullptr;
    good(enqueue(from.data(), to.data(), &request), name);
    good(weft_wait_enqueue(request, stream), "wait");
    good(weft_gpu_request_free(&request), "free");
    good(cuStreamSynchronize(stream), "synchronize");
    const std::vector<int> found = to.content();
    int wrong = 0;
    for (int i = 0; i < n * ranks; ++i) wrong += found[static_cast<std::size_t>(i)] != right(i);
    ++cases;
    // The memory of those before may not be free yet.
    constexpr std::size_t kMost = 3 * 17 << 20;
    const std::size_t taken = standin::pinned() - before;
    if (taken <= kMost && wrong == 0) return;
    ++failures;
    std::printf("rank %d: %s: %d are wrong, %zu bytes are pinned\n", rank, name, wrong, taken);
  };
  check(
      "allreduce",
      [&](const int* from, int* to, weft_gpu_request* request) {
        return weft_iallreduce_enqueue(from, to, kInts, MPI_INT, MPI_SUM, world, stream, request);
      },
      [](int) { return ranks * (ranks - 1) / 2; });
  check(
      "alltoall",
      [&](const int* from, int* to, weft_gpu_request* request) {
        return weft_ialltoall_enqueue(from, n, MPI_INT, to, n, MPI_INT, world, stream, request);
      },
      [n](int i) { return i / n; });
  check(
      "allgatherv",
      [&](const int* from, int* to, weft_gpu_request* request) {
        return weft_iallgatherv_enqueue(from, m.uneven[rank], MPI_INT, to, m.uneven, m.at, MPI_INT,
                                        world, stream, request);
      },
      [&](int i) { return i % n < m.uneven[i / n] ? i / n : -1; });
}

// The same bytes, which each rank describes in a way of its own: rank 0's type has holes, and its
// data are the processor's.
void long_ones_of_types_with_holes() {
  constexpr int kInts = 300'001;
  const auto block = static_cast<std::size_t>(kInts);
  MPI_Datatype spread, pair;
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread);
  MPI_Type_contiguous(kInts, MPI_INT, &pair);
  for (MPI_Datatype* one : {&spread, &pair}) MPI_Type_commit(one);
  const bool has_holes = rank == 0;
  const std::size_t stride = has_holes ? 2 : 1;
  const MPI_Datatype type = has_holes ? spread : pair;
  const int count = has_holes ? kInts : 1;
  const auto all = static_cast<std::size_t>(ranks) * block;
  std::vector<int> start(all * stride, -1), gathered = start, spread_out = start;
  for (std::size_t i = 0; i < block; ++i) start[i * stride] = static_cast<int>(i) + rank;
  for (std::size_t i = 0; i < all; ++i) {
    gathered[i * stride] = static_cast<int>(i % block + i / block);
    if (i < block) spread_out[i * stride] = static_cast<int>(i);
  }
  const Where where = has_holes ? kProcessor : kDevice;
  Buffer mine(start, where), everybodys(std::vector<int>(all * stride, -1), where);
  weft_gpu_request first = nullptr, second = nullptr;
  good(weft_iallgather_enqueue(mine.data(), count, type, everybodys.data(), count, type, world,
                               stream, &first),
       "allgather");
  good(weft_wait_enqueue(first, stream), "wait");
  good(weft_ibcast_enqueue(mine.data(), count, type, 0, world, stream, &second), "bcast");
  good(weft_wait_enqueue(second, stream), "wait");
  for (weft_gpu_request* one : {&first, &second}) good(weft_gpu_request_free(one), "free");
  for (MPI_Datatype* one : {&spread, &pair}) MPI_Type_free(one);
  good(cuStreamSynchronize(stream), "synchronize");
  ++cases;
  if (everybodys.content() == gathered && mine.content() == spread_out) return;
  ++failures;
  std::printf("rank %d: wrong: long ones of types with holes\n", rank);
}

void expect_refusal(int code, const char* sentence) {
  ++cases;
  if (code != MPI_SUCCESS && std::string(weft_gpu_error()).find(sentence) != std::string::npos)
    return;
  ++failures;
  std::printf("rank %d: not refused: %s; said is: %s\n", rank, sentence, weft_gpu_error());
}

// It goes not in one kernel, for rank 1's reason, which all ranks are told; the sum is right.
void expect_sum_by_mpi(MPI_Comm comm, const std::string& reason) {
  Buffer data(std::vector<int>(5, rank + 1), kDevice);
  weft_gpu_request request = nullptr;
  good(weft_allreduce_init(MPI_IN_PLACE, data.data(), 5, MPI_INT, MPI_SUM, comm, &request), "init");
  const std::string way = "by calls of MPI's, not in one kernel: rank 1: " + reason;
  expect_way(weft_gpu_path_of(request), way.c_str());
  good(weft_run_enqueue(request, stream), "run");
  good(cuStreamSynchronize(stream), "synchronize");
  ++cases;
  if (data.content() != std::vector<int>(5, ranks * (ranks + 1) / 2)) ++failures;
  good(weft_gpu_request_free(&request), "free");
}

// One rank alone cannot share its memory.
void one_rank_is_refused() {
  if (!standin::fail) return;
  constexpr int kUnsupported = 801;
  MPI_Comm own;
  MPI_Comm_dup(world, &own);
  if (rank == 1) standin::fail("cuIpcGetMemHandle", 1, kUnsupported);
  expect_sum_by_mpi(own, "cuIpcGetMemHandle");
  MPI_Comm_free(&own);
}

// Of more bytes than an int counts; it is never started.
void a_huge_type() {
  MPI_Datatype huge;
  MPI_Type_contiguous(1 << 30, MPI_INT, &huge);
  MPI_Type_commit(&huge);
  int one = 0;
  weft_gpu_request request = nullptr;
  good(weft_allgather_init(MPI_IN_PLACE, 0, MPI_INT, &one, 1, huge, world, &request), "init");
  expect_way(weft_gpu_path_of(request),
             "by calls of MPI's, not in one kernel: it has more than 256 KiB");
  good(weft_gpu_request_free(&request), "free");
  MPI_Type_free(&huge);
}

// One rank lacks what it needs for a collective in one kernel. It comes before all others, whose
// events would be used again.
void one_rank_has_no_event() {
  if (!standin::fail) return;
  MPI_Comm own;
  MPI_Comm_dup(world, &own);
  if (rank == 1) standin::fail("cuEventCreate", 1, 2);
  expect_sum_by_mpi(own, "cuEventCreate: CUDA_ERROR_OUT_OF");
  MPI_Comm_free(&own);
}

void launch(const char* kernel) {
  void* found = nullptr;
  good(cuModuleGetFunction(&found, nullptr, kernel), kernel);
  good(cuLaunchKernel(found, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), kernel);
}

void pause(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

// What follows in the stream comes late.
void delay_stream() {
  standin::add_kernel("test_late", 0, nullptr, [](void* const*) { pause(100); });
  launch("test_late");
}

// One rank's stream is late, so that what it has enqueued starts behind a call that prepares
// another collective; on the other ranks it starts before.
void prepared_beside_a_late_stream() {
  if (!standin::add_kernel) return;
  MPI_Comm own;
  MPI_Comm_dup(world, &own);
  Buffer sum(std::vector<int>(100, rank), kProcessor), most(std::vector<int>(7, rank), kProcessor);
  weft_gpu_request early = nullptr, prepared = nullptr;
  for (int round = 0; round < 2; ++round) {  // in the second one Weft's communicators are there
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
  ++cases;
  const int right = ranks * ranks * (ranks - 1) / 2;
  if (sum.content() != std::vector<int>(100, right) ||
      most.content() != std::vector<int>(7, ranks - 1)) {
    ++failures;
    std::printf("rank %d: wrong: prepared beside a late stream\n", rank);
  }
  MPI_Comm_free(&own);
}

// ---- half and bfloat16
// -------------------------------------------------------------------------------

// Of a number that the type has: so many bits of its mantissa are stored.
std::uint16_t bits_of(double number, int mantissa) {
  const int exponent_bits = 15 - mantissa, bias = (1 << (exponent_bits - 1)) - 1;
  if (number == 0) return 0;
  int exponent = 0;
  const double fraction = 2 * std::frexp(std::abs(number), &exponent) - 1;  // 0 to 1
  const auto stored = static_cast<int>(std::ldexp(fraction, mantissa));
  const int sign = number < 0 ? 0x8000 : 0;
  return static_cast<std::uint16_t>(sign | (exponent - 1 + bias) << mantissa | stored);
}

class ShortFloats {
 public:
  ShortFloats(weft_gpu_type type, int mantissa)
      : type_(weft_gpu_datatype(type)), mantissa_(mantissa), big_(2 << mantissa) {}

  void run(int n) {
    check("allreduce", n, n, MPI_SUM, ranks, [&](const int* from, int* to, weft_gpu_request* r) {
      return weft_iallreduce_enqueue(from, to, n, type_, MPI_SUM, world, stream, r);
    });
    check("allreduce", n, n, MPI_MAX, ranks, [&](const int* from, int* to, weft_gpu_request* r) {
      return weft_iallreduce_enqueue(from, to, n, type_, MPI_MAX, world, stream, r);
    });
    check("scan", n, n, MPI_SUM, rank + 1, [&](const int* from, int* to, weft_gpu_request* r) {
      return weft_iscan_enqueue(from, to, n, type_, MPI_SUM, world, stream, r);
    });
    check("exscan", n, n, MPI_MIN, rank, [&](const int* from, int* to, weft_gpu_request* r) {
      return weft_iexscan_enqueue(from, to, n, type_, MPI_MIN, world, stream, r);
    });
    check("reduce", n, rank == 1 ? n : 0, MPI_SUM, ranks,
          [&](const int* from, int* to, weft_gpu_request* r) {
            return weft_ireduce_enqueue(from, to, n, type_, MPI_SUM, 1, world, stream, r);
          });
    check("reduce_scatter_block", n * ranks, n, MPI_SUM, ranks,
          [&](const int* from, int* to, weft_gpu_request* r) {
            return weft_ireduce_scatter_block_enqueue(from, to, n, type_, MPI_SUM, world, stream,
                                                      r);
          });
    check("prepared", n, n, MPI_SUM, ranks, [&](const int* from, int* to, weft_gpu_request* r) {
      const int code = weft_allreduce_init(from, to, n, type_, MPI_SUM, world, r);
      if (code == MPI_SUCCESS && expected_way) expect_way(weft_gpu_path_of(*r), expected_way);
      return code != MPI_SUCCESS ? code : weft_start_enqueue(*r, stream);
    });
  }

 private:
  using Pairs = std::vector<int>;  // two numbers in each

  // Every fourth sum is half way between two numbers of the type, and becomes the even one.
  double given(std::size_t i, int of_rank) const {
    const std::size_t kind = i % 4;
    if (kind < 2) return of_rank == 0 ? big_ : of_rank == 1 ? (kind == 0 ? 1 : 3) : 0;
    if (kind == 2) return -(of_rank + 1) * static_cast<int>(i % 5);
    return 0.5 * (of_rank + 1);
  }
  // Of the first ranks.
  double right(std::size_t i, MPI_Op op, int of_ranks) const {
    double result = given(i, 0);
    for (int other = 1; other < of_ranks; ++other) {
      const double one = given(i, other);
      if (op == MPI_SUM) result += one;
      if (op == MPI_MAX) result = std::max(result, one);
      if (op == MPI_MIN) result = std::min(result, one);
    }
    if (op == MPI_SUM && of_ranks > 1 && i % 4 < 2) return i % 4 == 0 ? big_ : big_ + 4;
    return result;
  }
  template <class F>
  Pairs pairs(int n, const F& number) const {
    Pairs all(static_cast<std::size_t>(n + 1) / 2);
    auto* const to = reinterpret_cast<std::byte*>(all.data());
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      const std::uint16_t bits = bits_of(number(i), mantissa_);
      std::memcpy(to + i * sizeof bits, &bits, sizeof bits);
    }
    return all;
  }
  template <class Call>
  void check(const char* name, int from_count, int count, MPI_Op op, int of_ranks,
             const Call& call) {
    Buffer from(pairs(from_count, [this](std::size_t i) { return given(i, rank); }), kDevice);
    Buffer to(pairs(std::max(count, 2), [](std::size_t) { return 0.0; }), kDevice);
    weft_gpu_request request = nullptr;
    good(call(from.data(), to.data(), &request), name);
    good(weft_wait_enqueue(request, stream), "wait");
    good(weft_gpu_request_free(&request), "free");
    good(cuStreamSynchronize(stream), "synchronize");
    if (count == 0 || of_ranks == 0) return;  // nothing is defined here
    const auto first = static_cast<std::size_t>(from_count > count ? rank * count : 0);
    ++cases;
    if (to.content() == pairs(count, [&](std::size_t i) { return right(first + i, op, of_ranks); }))
      return;
    ++failures;
    std::printf("rank %d: wrong: %s of %d numbers with %d bits\n", rank, name, count, mantissa_);
  }

  const MPI_Datatype type_;
  const int mantissa_;
  const int big_;  // the next number of the type is two more
};

void short_floats(bool in_one_kernel) {
  constexpr int kShort = 1003, kLong = 600'002;
  for (const int n : {kShort, kLong}) {
    expected_way = in_one_kernel && n == kShort ? "in one kernel" : nullptr;
    ShortFloats(WEFT_GPU_HALF, 10).run(n);
    ShortFloats(WEFT_GPU_BFLOAT16, 7).run(n);
  }
}

// ---- Failures
// ----------------------------------------------------------------------------------------

// All ranks give MPI an operator that the type lacks, which it finds when the agent makes the call.
// One that nobody asks about is said at the end.
std::atomic<bool> gate_is_open{false};

void failures_are_told() {
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
    if (!is_asked) launch("test_gate");
    good(weft_iallreduce_enqueue(MPI_IN_PLACE, data.data(), 5, MPI_FLOAT, MPI_BAND, its, stream,
                                 &request),
         "enqueue");
    weft_wait_enqueue(request, stream);
    if (!is_asked) good(weft_gpu_request_free(&request), "free");
    gate_is_open = true;
    good(cuStreamSynchronize(stream), "synchronize");
    if (is_asked) {
      ++cases;
      int group = MPI_SUCCESS;
      MPI_Error_class(weft_gpu_request_status(request), &group);
      const bool is_told = group == MPI_ERR_OP && *weft_gpu_error() != '\0';
      const int freed = weft_gpu_request_free(&request);
      MPI_Error_class(freed, &group);
      if (!is_told || group != MPI_ERR_OP || request) {
        ++failures;
        std::printf("rank %d: not told of a failure: %s\n", rank, weft_gpu_error());
      }
    }
    MPI_Comm_free(&its);
  }
  MPI_Comm_free(&own);
}

// Data types that are gone when the call is made.
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
  MPI_Type_vector(1, 1, 1, MPI_CHAR, &every_second);  // what may take its place
  MPI_Type_vector(1, 1, 1, MPI_CHAR, &pair);
  for (weft_gpu_request* one : {&first, &second}) {
    good(weft_wait_enqueue(*one, stream), "wait");
    good(weft_gpu_request_free(one), "free");
  }
  good(cuStreamSynchronize(stream), "synchronize");
  for (MPI_Datatype* one : {&every_second, &pair}) MPI_Type_free(one);
  ++cases;
  std::vector<int> right(2 * kMost);
  for (int i = 0; i < ranks; ++i) {
    right[static_cast<std::size_t>(m.at[i])] = right[static_cast<std::size_t>(m.at[i]) + 1] = i;
  }
  if (spread.content() == std::vector<int>{1, rank, 1, rank, 1, rank} && to.content() == right)
    return;
  ++failures;
  std::printf("rank %d: wrong: data types that are freed at once\n", rank);
}

// One rank's kernel has failed, so that nothing runs there any more: it is told, and the others go
// on.
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

// One after the other, so that places are used again, and several at one time.
void many_in_one_kernel() {
  constexpr int kAtATime = 20, kRounds = 5;  // more than there are places
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::unique_ptr<Buffer>> all;
    std::vector<weft_gpu_request> requests(kAtATime);
    for (int i = 0; i < kAtATime; ++i) {
      all.push_back(std::make_unique<Buffer>(std::vector<int>(3000, rank + i), kDevice));
      good(weft_allreduce_init(MPI_IN_PLACE, all.back()->data(), 3000, MPI_INT, MPI_SUM, world,
                               &requests[static_cast<std::size_t>(i)]),
           "init");
    }
    for (int i = 0; i < kAtATime; ++i) {  // each rank in an order of its own
      const auto one = static_cast<std::size_t>((i * 7 + rank * 3) % kAtATime);
      good(weft_start_enqueue(requests[one], stream), "start");
    }
    for (weft_gpu_request& one : requests) good(weft_wait_enqueue(one, stream), "wait");
    for (weft_gpu_request& one : requests) good(weft_gpu_request_free(&one), "free");
    good(cuStreamSynchronize(stream), "synchronize");
    for (int i = 0; i < kAtATime; ++i) {
      ++cases;
      const int sum = ranks * (ranks - 1) / 2 + i * ranks;
      if (all[static_cast<std::size_t>(i)]->content() == std::vector<int>(3000, sum)) continue;
      ++failures;
      std::printf("rank %d: wrong: allreduce %d of many\n", rank, i);
    }
  }
}

void refusals() {
  weft_gpu_request request = nullptr;
  Buffer device(filled(100, 1), kDevice);
  expect_refusal(weft_wait_enqueue(nullptr, stream), "there is no request");
  expect_refusal(weft_gpu_request_free(&request), "there is no request");
  expect_refusal(weft_reduce_local_enqueue(device.data(), device.data(), 1, WEFT_GPU_HALF,
                                           WEFT_GPU_BAND, stream),
                 "no such operator");
  expect_refusal(weft_gpu_request_status(nullptr), "there is no request");
  expect_refusal(
      weft_iallreduce_enqueue(MPI_IN_PLACE, device.data(), 1, weft_gpu_datatype(WEFT_GPU_HALF),
                              MPI_BAND, world, stream, &request),
      "half and bfloat16 have no such operator");
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
  MPI_Type_free(&spread);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || !standin::load_driver(argv[1])) {
    std::fprintf(stderr, "usage: gpu_streams DRIVER [WAY]\n");
    return 2;
  }
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  if (level < MPI_THREAD_MULTIPLE) return 77;
  world = MPI_COMM_WORLD;
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &ranks);
  const int around = 1;
  MPI_Cart_create(world, 1, &ranks, &around, 0, &ring);
  void* context = nullptr;
  good(cuInit(0), "init");
  good(cuDevicePrimaryCtxRetain(&context, 0), "context");
  good(cuCtxSetCurrent(context), "context");
  good(cuStreamCreate(&stream, 1), "stream");
  const bool in_one_kernel = argc < 3;
  if (in_one_kernel) one_rank_has_no_event();
  pinned_memory_is_bounded();
  for (const Case& one : all_cases()) {
    expected_way = in_one_kernel ? "in one kernel" : argv[2];
    run(one, 2, kDevice, kDevice);
    run(one, 1000, kDevice, kDevice);
    expected_way = "by calls of MPI's";
    run(one, 1000, rank % 2 == 0 ? kDevice : kProcessor, rank % 2 != 0 ? kDevice : kProcessor);
    run(one, 1000, kProcessor, kProcessor);
    run(one, 1000, kManaged, kManaged);
    if (travels_in_parts(one)) run(one, 300'000, kDevice, rank != 0 ? kDevice : kProcessor);
  }
  blocks_are_reduced_in_place();
  parts_that_take_turns();
  long_ones_of_types_with_holes();
  short_floats(in_one_kernel);
  managed_memory_that_is_not_shared();
  many_in_one_kernel();
  a_huge_type();
  prepared_beside_a_late_stream();
  types_are_freed_at_once();
  if (standin::add_kernel) failures_are_told();
  if (in_one_kernel) one_rank_is_refused();
  if (in_one_kernel) one_rank_is_lost();
  refusals();
  MPI_Comm_free(&ring);
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, world);
  if (rank == 0 && all == 0) std::printf("%d cases equal\n", cases);
  MPI_Finalize();
  return all > 0;
}
