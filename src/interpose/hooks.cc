#include "interpose/hooks.h"

#include "runtime/job/runtime.h"

namespace weft::interpose {

void poll() {
  Runtime* runtime = Runtime::active();
  if (runtime && runtime->progress.under_way() > 0) runtime->progress.poll();
}

}  // namespace weft::interpose
