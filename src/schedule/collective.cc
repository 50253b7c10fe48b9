// Names of the collectives.
#include "schedule/collective.h"

namespace weft {

const char* kind_name(Kind kind) {
  constexpr const char* names[kKinds] = {"barrier",   "bcast",    "reduce", "allreduce",
                                         "allgather", "alltoall", "scan"};
  return names[static_cast<int>(kind)];
}

}  // namespace weft
