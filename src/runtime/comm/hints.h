// Hints: the application's settings for a communicator, given by info keys (MPI_Comm_set_info,
// MPI_Comm_dup_with_info). They take precedence over the program's options.
#pragma once

#include <mpi.h>

#include <array>
#include <optional>
#include <string>

#include "base/config.h"

namespace weft {

struct Hints {
  std::optional<Engine> engine;                 // info key weft_engine
  std::array<std::string, kKinds> algorithm{};  // info key weft_algorithm; empty without a hint
  std::optional<PlacementPolicy> placement;  // info key weft_placement; for threads that serve only
                                             // this communicator

  bool any() const;
  const std::string* algorithm_for(Kind kind) const;  // returns nullptr without a hint
};

// Reads the hints; a wrong value is reported and ignored. Collective over `comm`: if its ranks give
// different hints, one of them reports it, and all are ignored.
Hints read_hints(MPI_Info info, MPI_Comm comm);

}  // namespace weft
