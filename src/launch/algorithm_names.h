// Lists the names of the algorithms of each collective. This works without linking the algorithms'
// code.
#pragma once

#include <vector>

#include "base/kind.h"

namespace weft::launch {

inline std::vector<const char*> algorithm_names(Kind kind) {
  struct Named {
    Kind kind;
    const char* name;
  };
  constexpr Named kAll[] = {
#define WEFT_ALGORITHM(kind, name, build, needs, source) {Kind::kind, name},
#include "coll/algorithms.def"
#undef WEFT_ALGORITHM
  };
  std::vector<const char*> names;
  for (const Named& one : kAll)
    if (one.kind == kind) names.push_back(one.name);
  return names;
}

}  // namespace weft::launch
