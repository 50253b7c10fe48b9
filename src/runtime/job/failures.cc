// Makes the configuration for jobs that continue after failures: engine native, as if the user had
// chosen it.
#include "runtime/job/failures.h"

namespace weft {

Config left_to_library(Config wanted) {
  wanted.engine = Engine::native;
  wanted.summary = false;
  wanted.summary_json_file.clear();
  wanted.trace_file.clear();
  return wanted;
}

bool leaves_something(const Config& wanted) {
  return wanted.engine != Engine::native || wanted.summary || !wanted.summary_json_file.empty() ||
         !wanted.trace_file.empty();
}

}  // namespace weft
