// Long collectives in streams, which travel in chunks.
#include <numeric>

#include "gpu_streams.h"

namespace streams {

// After the result, the contents of the buffer are undefined.
void blocks_are_reduced_in_place() {
  for (const int n : {1000, 300'000}) {
    std::vector<int> content(static_cast<std::size_t>(n) * static_cast<std::size_t>(ranks));
    for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<int>(i) + rank;
    Buffer data(content, kDevice);
    weft_gpu_request request = nullptr;
    good(weft_ireduce_scatter_block_enqueue(MPI_IN_PLACE, data.data(), n, MPI_INT, MPI_MAX, world,
                                            stream, &request),
         "reduce_scatter_block");
    finish(&request);
    std::vector<int> found = data.content(), right(static_cast<std::size_t>(n));
    found.resize(right.size());
    std::iota(right.begin(), right.end(), rank * n + ranks - 1);
    expect(found == right, "blocks of " + std::to_string(n) + " ints reduced in place");
  }
}

// Several long collectives run one after the other. Before them no memory was pinned; they must not
// pin more than a fixed amount.
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
    finish(&request);
    const std::vector<int> found = to.content();
    int wrong = 0;
    for (int i = 0; i < n * ranks; ++i) wrong += found[static_cast<std::size_t>(i)] != right(i);
    // The memory of earlier collectives may not be free yet.
    constexpr std::size_t kMost = 3 * 17 << 20;
    const std::size_t taken = standin::pinned() - before;
    expect(taken <= kMost && wrong == 0, std::string(name) + ": " + std::to_string(wrong) +
                                             " ints; pinned are " + std::to_string(taken) +
                                             " bytes");
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

// All ranks send the same bytes, with different types. The type of rank 0 has holes, and its data
// are in host memory.
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
  good(weft_gpu_request_free(&first), "free");
  good(weft_ibcast_enqueue(mine.data(), count, type, 0, world, stream, &second), "bcast");
  for (MPI_Datatype* one : {&spread, &pair}) MPI_Type_free(one);
  finish(&second);
  expect(everybodys.content() == gathered && mine.content() == spread_out,
         "long ones of types with holes");
}

}  // namespace streams
