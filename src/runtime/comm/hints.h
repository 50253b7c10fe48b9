// Hints: the application's wishes for a communicator, given by info keys (MPI_Comm_set_info,
// MPI_Comm_dup_with_info). They take precedence over the options of the program.
#pragma once

#include <mpi.h>

#include <array>
#include <optional>
#include <string>

#include "base/config.h"

namespace weft {

struct Hints {
  std::optional<Engine> engine;                 // weft_engine
  std::array<std::string, kKinds> algorithm{};  // weft_algorithm; empty: none
  std::optional<PlacementPolicy> placement;     // weft_placement; of threads that serve no other

  bool any() const;
  const std::string* algorithm_for(Kind kind) const;  // nullptr: none
};

// Reads the hints; a wrong value is reported and ignored. Collective over `comm`: if its ranks give
// different hints, one of them says so, and there are none.
Hints read_hints(MPI_Info info, MPI_Comm comm);

}  // namespace weft
