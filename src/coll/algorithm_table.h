// The table of all algorithms, available at compile time: one entry for each line of
// algorithms.def.
#pragma once

#include "coll/algorithm.h"
#include "coll/build_functions.h"

namespace weft {

inline constexpr Algorithm kAlgorithms[] = {
#define WEFT_ALGORITHM(kind, name, function, needs, source) \
  {Kind::kind, name, Needs::needs, source, function},
#include "coll/algorithms.def"
#undef WEFT_ALGORITHM
};

}  // namespace weft
