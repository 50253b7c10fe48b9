// nbceff: the program that `weft bench` runs. It measures how much of a collective is hidden behind
// different amounts of computation. It is an ordinary MPI program, so it measures what programs
// get. The engine is chosen for each communicator by an info hint, which MPI libraries ignore.
// Without --iterations it measures only communication, and how long one iteration of the
// computation takes. Method: NBC-Eff (docs/benchmarking.md).
#include <mpi.h>

#include <cstdio>

#include "operation.h"
#include "sampling.h"

namespace bench {
namespace {

// MpiCommunication: one of MPI's collectives, with a communicator for each engine and one without
// hints.
class MpiCommunication : public Communication {
 public:
  MpiCommunication(const SamplingOptions& options, int rank, int ranks)
      : operation_(*find_collective(options.collective), options.bytes, rank, ranks) {
    MPI_Comm_dup(MPI_COMM_WORLD, &plain_);
    for (const auto& engine : options.engines) {
      MPI_Info info;
      MPI_Info_create(&info);
      MPI_Info_set(info, "weft_engine", engine.c_str());
      MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comms_.emplace_back());
      MPI_Info_free(&info);
    }
  }
  ~MpiCommunication() override {
    for (auto& comm : comms_) MPI_Comm_free(&comm);
    MPI_Comm_free(&plain_);
  }

  void prepare(int salt) override { operation_.prepare(salt); }
  void blocking() override { operation_.blocking(plain_); }
  void start(std::size_t engine) override { operation_.start(comms_[engine], &request_); }
  void wait() override { MPI_Wait(&request_, MPI_STATUS_IGNORE); }
  bool correct() const override { return operation_.correct(); }

 private:
  Operation operation_;
  MPI_Comm plain_ = MPI_COMM_NULL;
  std::vector<MPI_Comm> comms_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

int measure(const SamplingOptions& options) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::string problem;
  const auto work = make_work(options.work, rank, ranks, &problem);
  int without_work = work ? 0 : 1, any = 0;
  if (!work) std::fprintf(stderr, "nbceff: rank %d: %s\n", rank, problem.c_str());
  MPI_Allreduce(&without_work, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (any) return 2;
  MpiCommunication communication(options, rank, ranks);
  return Sampling(options, &communication, work.get()).run();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::SamplingOptions options;
  std::string problem;
  if (!bench::parse(argc, argv, &options, &problem)) {
    std::fprintf(stderr, "nbceff: %s\n", problem.c_str());
    return 2;
  }
  MPI_Init(&argc, &argv);
  const int status = bench::measure(options);
  MPI_Finalize();
  return status;
}
