// The table of algorithms, one entry per line of algorithms.def, available at compile time.
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
