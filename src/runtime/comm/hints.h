// Hints holds the application's settings for one communicator. They are given by info keys
// (MPI_Comm_set_info, MPI_Comm_dup_with_info) and take precedence over the job's options.
#pragma once

#include <mpi.h>

#include <array>
#include <optional>
#include <string>

#include "base/config.h"

namespace weft {

struct Hints {
  std::optional<Engine> engine;  // info key weft_engine
  // Info key weft_algorithm, by kind; empty if not set.
  std::array<std::string, kKinds> algorithm{};
  // Info key weft_placement: the placement of threads that serve only this communicator.
  std::optional<PlacementPolicy> placement;

  bool any() const;
  const std::string* algorithm_for(Kind kind) const;  // returns nullptr if the key is not set
};

// Reads the hints. A wrong value is reported and ignored. It is collective over `comm`: if ranks
// give different values, one of them reports that, and all hints are ignored.
Hints read_hints(MPI_Info info, MPI_Comm comm);

}  // namespace weft
