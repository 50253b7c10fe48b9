// Blocks: the collectives that `replay` needs besides those of Operation. All have a block for each
// rank, and rank 0 is the root. Results are not checked, since only the time matters.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "persistent.h"

namespace bench {

class Blocks {
 public:
  // collective: gather, scatter, reduce_scatter or reduce_scatter_block. bytes: bytes of one block.
  Blocks(const std::string& collective, long bytes, int rank, int size)
      : gathers_(collective == "gather"),
        scatters_(collective == "scatter"),
        counts_(collective == "reduce_scatter" ? size : 0, static_cast<int>(bytes / 8)),
        count_(static_cast<int>(bytes / 8)),
        written_(collective == "gather"                 ? count_
                 : collective == "scatter" && rank != 0 ? 0
                                                        : count_ * size),
        send_(static_cast<std::size_t>(size) * static_cast<std::size_t>(count_), 1),
        receive_(send_.size()) {}

  void rewrite() {
    for (int i = 0; i < written_; ++i) {
      volatile double& x = send_[static_cast<std::size_t>(i)];
      x = x;
    }
  }
  void blocking(MPI_Comm comm) {
    const double* in = send_.data();
    double* out = receive_.data();
    if (gathers_)
      MPI_Gather(in, count_, MPI_DOUBLE, out, count_, MPI_DOUBLE, 0, comm);
    else if (scatters_)
      MPI_Scatter(in, count_, MPI_DOUBLE, out, count_, MPI_DOUBLE, 0, comm);
    else if (counts_.empty())
      MPI_Reduce_scatter_block(in, out, count_, MPI_DOUBLE, MPI_SUM, comm);
    else
      MPI_Reduce_scatter(in, out, counts_.data(), MPI_DOUBLE, MPI_SUM, comm);
  }

  void start(MPI_Comm comm, MPI_Request* request) {
    const double* in = send_.data();
    double* out = receive_.data();
    if (gathers_)
      MPI_Igather(in, count_, MPI_DOUBLE, out, count_, MPI_DOUBLE, 0, comm, request);
    else if (scatters_)
      MPI_Iscatter(in, count_, MPI_DOUBLE, out, count_, MPI_DOUBLE, 0, comm, request);
    else if (counts_.empty())
      MPI_Ireduce_scatter_block(in, out, count_, MPI_DOUBLE, MPI_SUM, comm, request);
    else
      MPI_Ireduce_scatter(in, out, counts_.data(), MPI_DOUBLE, MPI_SUM, comm, request);
  }

  void initialise(MPI_Comm comm, MPI_Request* request) {
    need_persistent();
    const double* in = send_.data();
    double* out = receive_.data();
    const MPI_Info info = MPI_INFO_NULL;
    if (gathers_)
      MPI_Gather_init(in, count_, MPI_DOUBLE, out, count_, MPI_DOUBLE, 0, comm, info, request);
    else if (scatters_)
      MPI_Scatter_init(in, count_, MPI_DOUBLE, out, count_, MPI_DOUBLE, 0, comm, info, request);
    else if (counts_.empty())
      MPI_Reduce_scatter_block_init(in, out, count_, MPI_DOUBLE, MPI_SUM, comm, info, request);
    else
      MPI_Reduce_scatter_init(in, out, counts_.data(), MPI_DOUBLE, MPI_SUM, comm, info, request);
  }

 private:
  bool gathers_, scatters_;
  std::vector<int> counts_;  // counts of a reduce_scatter
  int count_, written_;      // numbers of elements of a block, and of what this rank sends
  std::vector<double> send_, receive_;
};

}  // namespace bench
