// Writes sentences for the user. Each sentence is written by a single write(), so that sentences of
// several ranks do not mix.
#include "base/log.h"

#include <unistd.h>

namespace weft {

void say(const std::string& sentence) {
  const std::string line = "weft: " + sentence + "\n";
  // The result of write() is ignored, because nothing can be done if standard error is closed.
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace weft
