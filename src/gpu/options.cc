#include "gpu/options.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include "base/config.h"

namespace weft::gpu {
namespace {

// Returns the index of the environment variable's value among three words; `otherwise` if the
// variable is not set; -1 if it has any other value.
int chosen(const char* variable, const char* const (&words)[3], int otherwise) {
  const char* const given = std::getenv(variable);
  if (!given || !*given) return otherwise;
  for (int i = 0; i < 3; ++i) {
    if (std::string(given) == words[i]) return i;
  }
  return -1;
}

// Reads a number of bytes from an environment variable. Leaves *bytes unchanged if the variable is
// not set. Returns false if its value is not a number.
bool read_bytes(const char* variable, std::size_t* bytes) {
  const char* const given = std::getenv(variable);
  if (!given || !*given) return true;
  const char* const end = given + std::strlen(given);
  const auto [stopped, error] = std::from_chars(given, end, *bytes);
  return error == std::errc() && stopped == end;
}

}  // namespace

// Reads the options of collectives in streams from environment variables. Returns an error if one
// has a wrong value. The documentation's table of variables is made of the lines below.
// Variable WEFT_GPU_ONE_KERNEL: whether kernels alone carry collectives out: auto, on, off.
// Variable WEFT_GPU_ONE_KERNEL_BYTES: up to how many bytes of a rank they carry.
// Variable WEFT_GPU_NCCL: whether NCCL may carry out persistent collectives: auto, on, off.
// Variable WEFT_GPU_NOTIFY: how streams announce starts and wait for ends: kernel, stream, auto.
// Variable WEFT_GPU_KERNEL_COPY: up to how many bytes kernels that announce starts or wait copy.
Result<Options> options_of_environment() {
  static constexpr const char* kUse[] = {"auto", "on", "off"};
  static constexpr const char* kNotify[] = {"kernel", "stream", "auto"};
  const int one_kernel = chosen("WEFT_GPU_ONE_KERNEL", kUse, 0);
  const int nccl = chosen("WEFT_GPU_NCCL", kUse, 0);
  const int notify = chosen("WEFT_GPU_NOTIFY", kNotify, 0);
  if (one_kernel < 0) return Error{"WEFT_GPU_ONE_KERNEL is auto, on or off"};
  if (nccl < 0) return Error{"WEFT_GPU_NCCL is auto, on or off"};
  if (notify < 0) return Error{"WEFT_GPU_NOTIFY is kernel, stream or auto"};
  Options made{static_cast<OneKernel>(one_kernel), static_cast<Notify>(notify),
               static_cast<UseNccl>(nccl)};
  if (!read_bytes("WEFT_GPU_KERNEL_COPY", &made.copied_by_kernels)) {
    return Error{"WEFT_GPU_KERNEL_COPY is a number of bytes"};
  }
  if (!read_bytes("WEFT_GPU_ONE_KERNEL_BYTES", &made.in_one_kernel)) {
    return Error{"WEFT_GPU_ONE_KERNEL_BYTES is a number of bytes"};
  }
  if (const char* const given = std::getenv("WEFT_INIT_BUDGET"); given && *given) {
    const auto budget = parse_duration(given, "the budget of an initialisation (WEFT_INIT_BUDGET)");
    if (!budget) return budget.error();
    made.init_budget_us = *budget;
  }
  return made;
}

}  // namespace weft::gpu
