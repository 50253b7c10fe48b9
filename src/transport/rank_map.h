// RankMap: the ranks in MPI_COMM_WORLD of a communicator's ranks. A table would take four bytes for
// each rank on each communicator of each process; but most communicators are a row, a column or a
// block of the job: ranks at equal distances.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace weft {

class RankMap {
 public:
  explicit RankMap(const std::vector<int>& world_ranks);

  // Returns the rank in MPI_COMM_WORLD.
  int at(int rank) const {
    const Run& run = runs_.size() == 1 ? runs_[0] : run_with(rank);
    return run.first + (rank - run.begin) * run.stride;
  }
  // Returns whether all ranks have the same numbers there.
  bool is_identity() const { return runs_.size() == 1 && runs_[0] == Run{0, 0, 1}; }
  std::size_t bytes() const { return sizeof *this + runs_.capacity() * sizeof(Run); }

  bool operator==(const RankMap&) const = default;

 private:
  struct Run {
    int begin;  // the first rank of the communicator in it
    int first;  // what that is in MPI_COMM_WORLD
    int stride;

    bool operator==(const Run&) const = default;
  };

  const Run& run_with(int rank) const;

  std::vector<Run> runs_;  // at least one
};

// Returns a shared object for equal maps in use. Thread-safe.
std::shared_ptr<const RankMap> shared_map(const std::vector<int>& world_ranks);

}  // namespace weft
