// Each sentence is written by a single write, so that those of several ranks do not mix.
#include "base/log.h"

#include <unistd.h>

namespace weft {

void say(const std::string& sentence) {
  const std::string line = "weft: " + sentence + "\n";
  // Nothing can be done if standard error is closed.
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace weft
