// RankMap: maps a communicator's ranks to ranks in MPI_COMM_WORLD. A table would take four bytes
// per rank on each communicator of each process. Most communicators are a row, a column or a block
// of the job, whose ranks have equal distances.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace weft {

class RankMap {
 public:
  explicit RankMap(const std::vector<int>& world_ranks);

  // Returns the rank in MPI_COMM_WORLD of the communicator's rank `rank`.
  int at(int rank) const {
    const Run& run = runs_.size() == 1 ? runs_[0] : run_with(rank);
    return run.first + (rank - run.begin) * run.stride;
  }
  // Returns whether each rank has the same number in the communicator and in MPI_COMM_WORLD.
  bool is_identity() const { return runs_.size() == 1 && runs_[0] == Run{0, 0, 1}; }
  std::size_t bytes() const { return sizeof *this + runs_.capacity() * sizeof(Run); }

  bool operator==(const RankMap&) const = default;

 private:
  struct Run {
    int begin;  // first rank of the run in the communicator
    int first;  // rank in MPI_COMM_WORLD of the rank `begin`
    int stride;

    bool operator==(const Run&) const = default;
  };

  const Run& run_with(int rank) const;

  std::vector<Run> runs_;  // runs in ascending order; there is at least one
};

// Returns the map for a communicator whose ranks have these ranks in MPI_COMM_WORLD. Equal maps
// share one object. Thread-safe.
std::shared_ptr<const RankMap> shared_map(const std::vector<int>& world_ranks);

}  // namespace weft
