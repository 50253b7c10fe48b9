// Sums of doubles whose result depends on the order of the additions, by every kind of reduction:
// blocking, non-blocking, persistent. It prints one hash of all results, so that two runs can be
// compared.
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

namespace {

// The hash function FNV-1a.
class Hash {
 public:
  void add(const std::vector<double>& numbers) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(numbers.data());
    for (std::size_t i = 0; i < numbers.size() * sizeof(double); ++i)
      value_ = (value_ ^ bytes[i]) * 1099511628211u;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037u;
};

// block: number of elements for each rank in a reduce-scatter.
void reduce_all(int rank, int ranks, int block, Hash& hash) {
  const int count = block * ranks;
  const auto size = static_cast<std::size_t>(count);
  std::mt19937_64 random(static_cast<unsigned>(rank * 1000 + block));
  std::uniform_real_distribution<double> anything(-1e3, 1e3);
  std::vector<double> mine(size), sums(size);
  for (double& number : mine) number = anything(random);
  const auto keep = [&](MPI_Request* request) {
    if (request) MPI_Wait(request, MPI_STATUS_IGNORE);
    hash.add(sums);
    sums.assign(size, 0);
  };
  const MPI_Comm comm = MPI_COMM_WORLD;
  const void* const in = mine.data();
  void* const out = sums.data();
  MPI_Request request;
  MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, comm);
  keep(nullptr);
  MPI_Iallreduce(in, out, count, MPI_DOUBLE, MPI_SUM, comm, &request);
  keep(&request);
  MPI_Ireduce(in, out, count, MPI_DOUBLE, MPI_SUM, ranks - 1, comm, &request);
  keep(&request);
  MPI_Reduce(in, out, count, MPI_DOUBLE, MPI_SUM, 0, comm);
  keep(nullptr);
  MPI_Ireduce_scatter_block(in, out, block, MPI_DOUBLE, MPI_SUM, comm, &request);
  keep(&request);
  MPI_Scan(in, out, count, MPI_DOUBLE, MPI_SUM, comm);
  keep(nullptr);
  MPI_Allreduce_init(in, out, count, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  keep(&request);
  MPI_Request_free(&request);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Hash hash;
  for (const int block : {1, 30, 1000, 30'000}) reduce_all(rank, ranks, block, hash);
  std::vector<std::uint64_t> all(static_cast<std::size_t>(ranks));
  const std::uint64_t mine = hash.value();
  MPI_Gather(&mine, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  for (const std::uint64_t one : all)
    if (rank == 0) std::printf("%016llx\n", static_cast<unsigned long long>(one));
  MPI_Finalize();
}
