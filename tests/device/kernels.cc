// The kernels of the stand-in for CUDA's driver: functions that are found by name. A stream calls
// them with copies of their parameters.
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gpu/short_copies.h"
#include "standin.h"
#include "streams.h"
#include "timeline.h"
#include "weft_gpu_device.h"

namespace standin {
namespace {

struct Kernel {
  std::vector<std::size_t> sizes;
  void (*run)(void* const* parameters);
};

weft_gpu_flags flags_in(void* const* parameters) {
  weft_gpu_flags flags;
  std::memcpy(&flags, parameters[0], sizeof flags);
  for (std::uint64_t** one : {&flags.sent, &flags.ready, &flags.done}) {
    *one = static_cast<std::uint64_t*>(standin_data(*one));
  }
  return flags;
}

// Finds the addresses at which the processor can make the copies. Returns false if the driver would
// refuse one of them.
bool find_copies(void* const* parameters, weft::gpu::ShortCopies* copies) {
  std::memcpy(copies, parameters[1], sizeof *copies);
  for (int i = 0; i < copies->count; ++i) {
    auto& [from, to, bytes] = copies->all[i];
    const auto begin = reinterpret_cast<Address>(from), end = reinterpret_cast<Address>(to);
    if (!kernel_may_run({{begin, bytes}, {end, bytes}})) return false;
    from = reinterpret_cast<const std::uint8_t*>(reachable(begin));
    to = reinterpret_cast<std::uint8_t*>(reachable(end));
  }
  return true;
}

// A stand-in's block has one thread.
void start(void* const* parameters) {
  weft::gpu::ShortCopies copies;
  if (find_copies(parameters, &copies)) copy_and_start(flags_in(parameters), copies, 0, 1, [] {});
}

// Finds the copies' addresses only after the wait, since their destinations may be freed meanwhile.
void wait(void* const* parameters) {
  weft::gpu::ShortCopies copies{};
  const weft_gpu_flags flags = flags_in(parameters);
  weft_device_wait(flags);
  if (find_copies(parameters, &copies)) wait_and_copy(flags, copies, 0, 1, [] {});
}

// A kernel that a context has loaded with a module.
struct Function {
  const Kernel* kernel;
  std::uint64_t context;
  std::string name;
};

std::mutex kernels_mutex;
std::map<std::pair<const Kernel*, std::uint64_t>, Function> functions;
std::map<std::string, Kernel>& kernels() {
  static std::map<std::string, Kernel> all = {
      {"weft_start", {{sizeof(weft_gpu_flags), sizeof(weft::gpu::ShortCopies)}, start}},
      {"weft_wait", {{sizeof(weft_gpu_flags), sizeof(weft::gpu::ShortCopies)}, wait}},
      {"standin_fault", {{}, [](void* const*) { fail_for_good(kIllegalAddress); }}},
  };
  return all;
}

}  // namespace
}  // namespace standin

using namespace standin;

extern "C" __attribute__((visibility("default"))) void standin_add_kernel(
    const char* name, int parameters, const std::size_t* sizes, void (*run)(void* const*)) {
  const std::lock_guard lock(kernels_mutex);
  kernels()[name] = {{sizes, sizes + parameters}, run};
}

DRIVER int cuModuleLoadData(void** module, const void* image) {
  if (const int code = stopped_without_context("cuModuleLoadData")) return code;
  *module = const_cast<void*>(image);
  return kSuccess;
}

DRIVER int cuModuleGetFunction(void** function, void*, const char* name) {
  if (const int code = stopped("cuModuleGetFunction")) return code;
  const std::lock_guard lock(kernels_mutex);
  const auto found = kernels().find(name);
  if (found == kernels().end()) return kNotFound;
  const std::uint64_t mine = owner().id;
  // An existing entry is not changed, since another thread may be using it.
  const auto [made, is_new] = functions.try_emplace({&found->second, mine});
  if (is_new) made->second = {&found->second, mine, name};
  *function = &made->second;
  return kSuccess;
}

DRIVER int cuFuncLoad(void*) {
  return stopped_without_context("cuFuncLoad");
}

namespace {

bool is_of_another_context(void* function) {
  return static_cast<const Function*>(function)->context != owner().id;
}

// Returns what a launch of the kernel does, with copies of its parameters.
Task task_of(void* function, void** parameters) {
  const auto& [kernel, context, name] = *static_cast<const Function*>(function);
  auto copies = std::make_shared<std::vector<std::vector<std::byte>>>();
  for (std::size_t i = 0; i < kernel->sizes.size(); ++i) {
    const auto* const begin = static_cast<const std::byte*>(parameters[i]);
    copies->emplace_back(begin, begin + kernel->sizes[i]);
  }
  return named(name, [run = kernel->run, copies] {
    std::vector<void*> given;
    for (auto& one : *copies) given.push_back(one.data());
    run(given.data());
  });
}

}  // namespace

DRIVER int cuLaunchKernel(void* function, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, unsigned, void* stream, void** parameters, void**) {
  if (const int code = stopped_without_context("cuLaunchKernel")) return code;
  if (is_of_another_context(function)) return kInvalidHandle;
  return enqueue(stream, task_of(function, parameters));
}

// The kernel starts once there is a free place for each of its blocks.
DRIVER int cuLaunchCooperativeKernel(void* function, unsigned gx, unsigned gy, unsigned gz,
                                     unsigned, unsigned, unsigned, unsigned, void* stream,
                                     void** parameters) {
  if (const int code = stopped_without_context("cuLaunchCooperativeKernel")) return code;
  if (is_of_another_context(function)) return kInvalidHandle;
  const unsigned blocks = gx * gy * gz;
  if (blocks > static_cast<unsigned>(all_places())) return kTooLargeToCooperate;
  return enqueue(stream, [blocks, task = task_of(function, parameters)] {
    take_places(blocks);
    task();
    give_places_back(blocks);
  });
}
