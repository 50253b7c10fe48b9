#include "runtime/node/reach.h"

namespace weft {

Reach& own_reach() {
  static auto* instance = new Reach;
  return *instance;
}

SharedRanges& shared_ranges() {
  static auto* instance = new SharedRanges;
  return *instance;
}

ProcessMemory* process_memory() {
  return own_reach().processes.get();
}

OneCopy* one_copy() {
  return own_reach().copies.get();
}

const OneCopyRule& one_copy_rule() {
  return own_reach().rule;
}

}  // namespace weft
