// Declares the build function of every algorithm in algorithms.def.
#pragma once

#include "schedule/builder.h"

namespace weft {

#define WEFT_ALGORITHM(kind, name, function, needs, source) void function(Builder&);
#include "coll/algorithms.def"
#undef WEFT_ALGORITHM

}  // namespace weft
