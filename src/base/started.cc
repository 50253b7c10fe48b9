#include "base/started.h"

#include <cstdlib>

namespace weft {

void restore_preload() {
  const char* const before = std::getenv(kPreloadBeforeVariable);
  if (!before) return;
  if (*before)
    setenv("LD_PRELOAD", before, 1);
  else
    unsetenv("LD_PRELOAD");
  unsetenv(kPreloadBeforeVariable);
}

}  // namespace weft
