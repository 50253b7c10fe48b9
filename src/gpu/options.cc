#include "gpu/options.h"

#include <cstdlib>
#include <string>

namespace weft::gpu {
namespace {

// Which of three words; where there is none, `otherwise`; -1: another word.
int chosen(const char* variable, const char* const (&words)[3], int otherwise) {
  const char* const given = std::getenv(variable);
  if (!given || !*given) return otherwise;
  for (int i = 0; i < 3; ++i) {
    if (std::string(given) == words[i]) return i;
  }
  return -1;
}

}  // namespace

Result<Options> options_of_environment() {
  static constexpr const char* kOneKernel[] = {"auto", "on", "off"};
  static constexpr const char* kNotify[] = {"kernel", "stream", "auto"};
  const int one_kernel = chosen("WEFT_GPU_ONE_KERNEL", kOneKernel, 0);
  const int notify = chosen("WEFT_GPU_NOTIFY", kNotify, 0);
  if (one_kernel < 0) return Error{"WEFT_GPU_ONE_KERNEL is auto, on or off"};
  if (notify < 0) return Error{"WEFT_GPU_NOTIFY is kernel, stream or auto"};
  return Options{static_cast<OneKernel>(one_kernel), static_cast<Notify>(notify)};
}

}  // namespace weft::gpu
