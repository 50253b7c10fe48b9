// Every collective in a stream, on device memory that the processor cannot access, on host memory,
// on both at once, and on managed memory: enqueued, persistent, and in a graph that is launched
// twice. Those of which each rank publishes the same bytes run in kernels alone on device memory,
// unless a rank cannot. This is an ordinary MPI program: `gpu_streams DRIVER [quick] [WAY]`, where
// DRIVER is the stand-in of tests/device, or libcuda.so.1 on a machine with a GPU. With `quick` the
// longest buffers are left out, and the functions whose counts are MPI_Count. If collectives must
// not run in one kernel, WAY is the beginning of what weft_gpu_path_of must return. The result must
// be what the MPI library computes from the same data in ordinary memory. It needs two ranks or
// more; its ring needs three.
#include "gpu_streams.h"

#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace streams {

static std::string engine_hint = "none";

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

std::vector<int> filled(int n, int seed, int blocks) {
  std::vector<int> content(static_cast<std::size_t>(n) * static_cast<std::size_t>(blocks));
  for (std::size_t i = 0; i < content.size(); ++i) {
    content[i] = static_cast<int>(i * 7) + seed * 1000 + rank * 31;
  }
  return content;
}

void pause(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

void delay_stream() {
  standin::add_kernel("test_late", 0, nullptr, [](void* const*) { pause(100); });
  launch("test_late");
}

namespace {

template <class These>
using Form = std::function<int(const These&, const int* from, int* to, weft_gpu_request*)>;

struct Case {
  const char* name;
  std::function<void(const Numbers&, const int* from, int* to)> blocking;
  Form<Numbers> enqueue, prepare;
  Form<LargeNumbers> enqueue_large = nullptr, prepare_large = nullptr;
};

#define WITH(These, ...)                                                                          \
  []([[maybe_unused]] const These& m, [[maybe_unused]] const int* from, [[maybe_unused]] int* to, \
     weft_gpu_request* request) { return __VA_ARGS__; }
#define WITH_INTS(Name, name, ...)                                                             \
#Name, []([[maybe_unused]] const Numbers& m, [[maybe_unused]] const int* from,               \
            [[maybe_unused]] int* to) { MPI_##Name(__VA_ARGS__); },                            \
                                                                 WITH(Numbers,                 \
                                                                      weft_i##name##_enqueue(  \
                                                                          __VA_ARGS__, stream, \
                                                                          request)),           \
                                                                 WITH(Numbers,                 \
                                                                      weft_##name##_init(      \
                                                                          __VA_ARGS__, request))
#define FORMS(Name, name, ...)                                                      \
  Case {                                                                            \
    WITH_INTS(Name, name, __VA_ARGS__),                                             \
        WITH(LargeNumbers, weft_i##name##_enqueue_c(__VA_ARGS__, stream, request)), \
        WITH(LargeNumbers, weft_##name##_init_c(__VA_ARGS__, request))              \
  }

const std::vector<Case>& all_cases() {
  static const std::vector<Case> all = {
      Case{WITH_INTS(Barrier, barrier, world)},
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

void check(const Case& one, const char* form, int n, Buffer& to, const std::vector<int>& right) {
  const bool is_defined = std::string(one.name) != "Exscan" || rank != 0;
  expect(!is_defined || to.content() == right,
         std::string(one.name) + ", " + form + ", " + std::to_string(n) + " ints");
}

// Returns the number of blocks in a buffer. A long allreduce gets only the block that it uses.
int blocks_of(const Case& one, int n) {
  constexpr int kLong = 1'000'000;
  return n > kLong && std::string(one.name) == "Allreduce" ? 1 : std::max(ranks, 2);
}

bool has_a_kernel(const Case& one) {
  const std::string name = one.name;
  for (const char* other :
       {"Bcast", "Allreduce", "Reduce_scatter_block", "Reduce_scatter", "Allgather", "Alltoall"}) {
    if (name == other) return true;
  }
  return false;
}

void run(const Case& one, int n, Where from_device, Where to_device) {
  const bool beside = std::string(one.name).rfind("Neighbor", 0) == 0;
  auto m = numbers(n, beside ? 2 : ranks);
  const std::vector<int> given = filled(n, 1, blocks_of(one, n));
  const std::vector<int> before = filled(n, 2, blocks_of(one, n));
  std::vector<int> once = before;
  one.blocking(m, given.data(), once.data());
  std::vector<int> twice = once;
  one.blocking(m, given.data(), twice.data());

  Buffer from(given, from_device);
  weft_gpu_request request = nullptr;
  {
    Buffer to(before, to_device);
    auto gone = m;
    good(one.enqueue(gone, from.data(), to.data(), &request), one.name);
    gone = {};  // the arrays have been copied, so the originals may change
    finish(&request);
    check(one, "enqueued", n, to, once);
  }
  {
    Buffer to(before, to_device);
    good(one.prepare(m, from.data(), to.data(), &request), one.name);
    if (has_a_kernel(one) && expected_way) expect_way(weft_gpu_path_of(request), expected_way);
    good(weft_start_enqueue(request, stream), "start");
    good(weft_wait_enqueue(request, stream), "wait");
    good(weft_run_enqueue(request, stream), "run");
    good(weft_gpu_request_free(&request), "free");
    good(cuStreamSynchronize(stream), "synchronize");
    check(one, "persistent", n, to, twice);
  }
  Buffer to(before, to_device);
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

template <class To, class From>
void convert(To* to, const From& from) {
  std::copy(std::begin(from), std::end(from), *to);
}

LargeNumbers large(const Numbers& m) {
  LargeNumbers made{};
  made.n = m.n;
  convert(&made.counts, m.counts);
  convert(&made.uneven, m.uneven);
  convert(&made.at, m.at);
  convert(&made.bytes_at, m.bytes_at);
  convert(&made.far_at, m.far_at);
  convert(&made.ints, m.ints);
  return made;
}

// Calls the functions whose counts are MPI_Count.
void run_large(const Case& one, int n) {
  if (!one.enqueue_large) return;
  const bool beside = std::string(one.name).rfind("Neighbor", 0) == 0;
  const auto m = numbers(n, beside ? 2 : ranks);
  const std::vector<int> given = filled(n, 1, blocks_of(one, n));
  std::vector<int> once = filled(n, 2, blocks_of(one, n));
  Buffer from(given, kDevice), to(once, kDevice);
  one.blocking(m, given.data(), once.data());
  std::vector<int> twice = once;
  one.blocking(m, given.data(), twice.data());
  weft_gpu_request request = nullptr;
  LargeNumbers gone = large(m);
  good(one.enqueue_large(gone, from.data(), to.data(), &request), one.name);
  gone = {};  // the arrays have been copied, so the originals may change
  finish(&request);
  check(one, "enqueued with MPI_Count", n, to, once);
  good(one.prepare_large(large(m), from.data(), to.data(), &request), one.name);
  good(weft_run_enqueue(request, stream), "run");
  good(weft_gpu_request_free(&request), "free");
  good(cuStreamSynchronize(stream), "synchronize");
  check(one, "persistent with MPI_Count", n, to, twice);
}

// On this device the processor may not access managed memory while a kernel runs.
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

bool travels_in_chunks(const Case& one) {
  const std::string name = one.name;
  for (const char* other :
       {"Bcast", "Reduce", "Allreduce", "Exscan", "Reduce_scatter_block", "Reduce_scatter",
        "Gather", "Scatter", "Allgather", "Allgatherv", "Alltoall"}) {
    if (name == other) return true;
  }
  return false;
}

// Buffers of more than 32 MiB, whose chunks use a few pinned buffers in turn.
void chunks_that_take_turns() {
  expected_way = nullptr;
  std::string before;
  for (const Case& one : all_cases()) {
    const std::string name = std::exchange(before, one.name) == one.name ? "" : one.name;
    const Where where = rank % 2 == 0 ? kDevice : kProcessor;
    if (name == "Allreduce") run(one, 8'500'000, where, kDevice);
    if (name == "Allgather" || name == "Alltoall") run(one, 8'500'000 / ranks, kDevice, where);
  }
}

}  // namespace
}  // namespace streams

// Replaces the MPI library's function, to record the info that Weft passes for its own
// communicators.
extern "C" int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made) {
  using Next = int(MPI_Comm, MPI_Info, MPI_Comm*);
  static auto* const next = reinterpret_cast<Next*>(dlsym(RTLD_NEXT, "MPI_Comm_dup_with_info"));
  char value[32] = "";
  int length = sizeof value, there = 0;
  MPI_Info_get_string(info, "weft_engine", &length, value, &there);
  if (there) streams::engine_hint = value;
  return next(comm, info, made);
}

int main(int argc, char** argv) {
  using namespace streams;
  if (argc < 2 || !standin::load_driver(argv[1])) {
    std::fprintf(stderr, "usage: gpu_streams DRIVER [quick] [WAY]\n");
    return 2;
  }
  is_quick = argc > 2 && std::string(argv[2]) == "quick";
  const char* const way = argc > 2 + is_quick ? argv[2 + is_quick] : nullptr;
  standin::begin(&argc, &argv, &rank, &ranks);
  world = MPI_COMM_WORLD;
  const int around = 1;
  MPI_Cart_create(world, 1, &ranks, &around, 0, &ring);
  good(cuStreamCreate(&stream, 1), "stream");
  const bool in_one_kernel = !way;
  if (in_one_kernel) one_rank_has_no_event();
  one_rank_fails_at_each_step();
  if (!is_quick) pinned_memory_is_bounded();
  for (const Case& one : all_cases()) {
    expected_way = in_one_kernel ? "in " : way;
    run(one, 2, kDevice, kDevice);
    run(one, 1000, kDevice, kDevice);
    expected_way = in_one_kernel ? "in three kernels" : way;
    if (has_a_kernel(one)) run(one, 100'000, kDevice, kDevice);
    expected_way = "by calls of MPI's";
    run(one, 1000, rank % 2 == 0 ? kDevice : kProcessor, rank % 2 != 0 ? kDevice : kProcessor);
    run(one, 1000, kProcessor, kProcessor);
    run(one, 1000, kManaged, kManaged);
    if (!is_quick) run_large(one, 1000);
    if (!is_quick && one.name == std::string("Allgatherv")) run_large(one, 300'000);
    if (travels_in_chunks(one)) run(one, 300'000, kDevice, rank != 0 ? kDevice : kProcessor);
  }
  blocks_are_reduced_in_place();
  if (!is_quick) chunks_that_take_turns();
  long_ones_of_types_with_holes();
  short_floats(in_one_kernel);
  managed_memory_that_is_not_shared();
  if (in_one_kernel) one_rank_has_memory_of_another_device();
  if (in_one_kernel) one_rank_has_no_memory();
  if (in_one_kernel) one_rank_cannot_measure();
  many_in_one_kernel();
  waited_for_in_other_orders();
  a_huge_type();
  prepared_beside_a_late_stream();
  enqueued_beside_a_capture();
  types_are_freed_at_once();
  failures_are_told();
  if (in_one_kernel) one_rank_is_refused();
  if (in_one_kernel) one_rank_is_lost();
  refusals();
  MPI_Comm_free(&ring);
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, world);
  if (rank == 0 && all == 0) std::printf("%d cases equal\n", cases);
  if (rank == 0) std::printf("hint of Weft's communicators: %s\n", engine_hint.c_str());
  MPI_Finalize();
  return all > 0;
}
