// Counts that do not fit into an int, with little memory: `gpu_large STAND-IN [LIBRARY]`, where
// STAND-IN is that of tests/device. Long data lie in a window of memory that is mapped repeatedly;
// other data are elements of 0 bytes. If LIBRARY is given, the MPI library lacks functions with
// MPI_Count; otherwise it has them if its header declares them.
#include <dlfcn.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "gpu_streams.h"

namespace streams {
namespace {

constexpr std::int64_t kMany = (std::int64_t{1} << 31) + 5000;
std::atomic<std::int64_t> broadcast_bytes{0};  // sum over the calls of MPI_Ibcast

// A range of addresses of the given size, all of which map the same window.
class Repeated {
 public:
  explicit Repeated(std::size_t bytes) : bytes_((bytes + kWindow - 1) / kWindow * kWindow) {
    const int file = memfd_create("window", MFD_CLOEXEC);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    if (file < 0 || ftruncate(file, kWindow) != 0) std::abort();
    memory_ = static_cast<unsigned char*>(mmap(nullptr, bytes_, PROT_NONE, flags, -1, 0));
    for (std::size_t at = 0; at < bytes_; at += kWindow) {
      const auto* const made =
          mmap(memory_ + at, kWindow, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
      if (made == MAP_FAILED) std::abort();
    }
    close(file);
  }
  ~Repeated() { munmap(memory_, bytes_); }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;

  static constexpr std::size_t kWindow = (1 << 20) + 4096;
  unsigned char* data() { return memory_; }

 private:
  const std::size_t bytes_;
  unsigned char* memory_;
};

unsigned char content(std::size_t i) {
  return static_cast<unsigned char>(i * 31 + i / 251);
}

// The data travel in chunks, with MPI functions whose counts are ints.
void many_bytes() {
  Repeated data(static_cast<std::size_t>(kMany));
  if (rank == 0) {
    for (std::size_t i = 0; i < Repeated::kWindow; ++i) data.data()[i] = content(i);
  }
  weft_gpu_request request = nullptr;
  good(weft_ibcast_enqueue_c(data.data(), kMany, MPI_BYTE, 0, world, stream, &request), "bcast");
  finish(&request);
  bool equal = true;
  for (std::size_t i = 0; i < Repeated::kWindow; ++i) equal &= data.data()[i] == content(i);
  expect(equal && broadcast_bytes == kMany,
         "a broadcast of " + std::to_string(broadcast_bytes) + " bytes");
}

// If the MPI library lacks functions with MPI_Count, it cannot transfer the elements, and all ranks
// must get an error.
#if MPI_VERSION >= 4 && !defined(OPEN_MPI)
bool library_counts = true;
#else
bool library_counts = false;
#endif

void expect_end(int code, weft_gpu_request* request, const char* what) {
  if (!library_counts) {
    expect_refusal(code, "this MPI library has no calls with MPI_Count");
    return;
  }
  good(code, what);
  finish(request);
}

// Elements of 0 bytes are never transferred in chunks.
void many_elements(bool is_persistent) {
  MPI_Comm own;
  MPI_Comm_dup(world, &own);
  MPI_Datatype nothing;
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  MPI_Type_commit(&nothing);
  MPI_Count counts[kMost];
  MPI_Aint at[kMost] = {};
  for (MPI_Count& one : counts) one = kMany;
  const std::vector<int> before(10, rank);
  Buffer from(before, kDevice), to(before, kDevice);
  weft_gpu_request request = nullptr;
  if (is_persistent) {
    const int code = weft_alltoallv_init_c(from.data(), counts, at, nothing, to.data(), counts, at,
                                           nothing, own, &request);
    if (code == MPI_SUCCESS) good(weft_start_enqueue(request, stream), "start");
    expect_end(code, &request, "alltoallv, persistent");
  } else {
    const int code = weft_ialltoallv_enqueue_c(from.data(), counts, at, nothing, to.data(), counts,
                                               at, nothing, own, stream, &request);
    expect_end(code, &request, "alltoallv");
  }
  expect(to.content() == before, "what has no bytes is left alone");
  MPI_Type_free(&nothing);
  MPI_Comm_free(&own);
}

// Blocks of a few bytes, one of them at the largest possible displacement. Arguments that MPI
// ignores on a rank have arbitrary values.
void a_far_block() {
  const std::size_t far = library_counts ? std::size_t{3} << 30 : 1 << 20;
  const std::size_t bytes = far + 4096;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  auto* const all = static_cast<char*>(memory);
  const char mine = static_cast<char>('a' + rank);
  MPI_Count counts[kMost];
  MPI_Aint at[kMost] = {};
  for (MPI_Count& one : counts) one = 1;
  at[ranks - 1] = static_cast<MPI_Aint>(far);
  weft_gpu_request request = nullptr;
  good(weft_igatherv_enqueue_c(&mine, 1, MPI_CHAR, all, rank == 0 ? counts : nullptr,
                               rank == 0 ? at : nullptr, MPI_CHAR, 0, world, stream, &request),
       "gatherv");
  finish(&request);
  expect(rank != 0 || (all[0] == 'a' && all[far] == 'a' + ranks - 1), "a far block");
  good(weft_igather_enqueue_c(&mine, 1, MPI_CHAR, all, rank == 0 ? 1 : kMany, MPI_CHAR, 0, world,
                              stream, &request),
       "gather");
  finish(&request);
  expect(rank != 0 || (all[0] == 'a' && all[1] == 'b'), "gathered");
  munmap(memory, bytes);
}

// Long collectives run in kernels alone, up to the smallest limit of all ranks.
void long_ones_in_kernels() {
  constexpr int kMostInts = 500'000;
  for (const int n : {kMostInts, kMostInts + 1}) {
    Buffer data(std::vector<int>(static_cast<std::size_t>(n), rank + 1), kDevice);
    weft_gpu_request request = nullptr;
    good(weft_allreduce_init_c(MPI_IN_PLACE, data.data(), n, MPI_INT, MPI_SUM, world, &request),
         "init");
    expect_way(weft_gpu_path_of(request),
               n <= kMostInts
                   ? "in three kernels"
                   : "by calls of MPI's, not in one kernel: it has more than 2000000 bytes");
    for (int i = 0; i < 2; ++i) good(weft_run_enqueue(request, stream), "run");
    good(weft_gpu_request_free(&request), "free");
    good(cuStreamSynchronize(stream), "synchronize");
    const int sum = ranks * ranks * (ranks + 1) / 2;
    expect(data.content() == std::vector<int>(static_cast<std::size_t>(n), sum), "a long sum");
  }
}

}  // namespace
}  // namespace streams

// Replaces the MPI library's function.
extern "C" int MPI_Ibcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm,
                          MPI_Request* request) {
  using Next = int(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Request*);
  static auto* const next = reinterpret_cast<Next*>(dlsym(RTLD_NEXT, "MPI_Ibcast"));
  streams::broadcast_bytes += count;
  return next(data, count, type, root, comm, request);
}

int main(int argc, char** argv) {
  using namespace streams;
  if (argc < 2 || !standin::load_driver(argv[1]) || !standin::add_kernel) {
    std::fprintf(stderr, "usage: gpu_large STAND-IN [LIBRARY]\n");
    return 2;
  }
  if (argc > 2) library_counts = false;
  standin::begin(&argc, &argv, &rank, &ranks);
  world = MPI_COMM_WORLD;
  good(cuStreamCreate(&stream, 1), "stream");
  setenv("WEFT_GPU_ONE_KERNEL_BYTES", rank == 0 ? "3000000" : "2000000", 1);
  long_ones_in_kernels();
  many_bytes();
  many_elements(false);
  many_elements(true);
  a_far_block();
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, world);
  if (rank == 0 && all == 0) std::printf("%d cases equal\n", cases);
  MPI_Finalize();
  return all > 0;
}
