// The devices of the stand-in for CUDA's driver, and their contexts. WEFT_STANDIN_DEVICES: number
// of devices, 1 by default. WEFT_STANDIN_STRANGERS: two devices that cannot access each other's
// memory, such as "0-2".
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "standin.h"
#include "streams.h"

namespace standin {
namespace {

// A context. After a reset of the device the same object, and so the same handle, is used again
// with a new id.
struct Context {
  int device = 0;
  std::uint64_t id = 0;
  bool gone = false;
};

std::mutex mutex;  // guards the contexts and the next three variables
std::uint64_t ids = 0;
// Never destroyed, since threads may run longer than main().
auto& primary = *new std::map<int, Context>;
auto& others = *new std::deque<Context>;
thread_local Context* current = nullptr;
// The contexts below `current` on the thread's stack of contexts.
thread_local std::vector<Context*> below;

int devices() {
  const char* const given = std::getenv("WEFT_STANDIN_DEVICES");
  return given ? std::max(1, std::atoi(given)) : 1;
}

Context& primary_of(int device) {
  Context& found = primary[device];
  if (found.id == 0 || found.gone) found = {device, ++ids, false};
  return found;
}

}  // namespace

int stopped_without_context(const char* call) {
  if (const int code = stopped(call)) return code;
  const std::lock_guard lock(mutex);
  if (!current) return kInvalidContext;
  return current->gone ? kContextIsDestroyed : kSuccess;
}

Owner owner() {
  const std::lock_guard lock(mutex);
  Context& one = current ? *current : primary_of(0);
  return {&one, one.id, one.device};
}

bool is_gone(const Owner& one) {
  const std::lock_guard lock(mutex);
  const auto& its = *static_cast<Context*>(one.context);
  return its.gone || its.id != one.id;
}

bool are_peers(int one, int other) {
  const char* const given = std::getenv("WEFT_STANDIN_STRANGERS");
  int first = -1, second = -1;
  if (!given || std::sscanf(given, "%d-%d", &first, &second) != 2) return true;
  return !(one == first && other == second) && !(one == second && other == first);
}

thread_local int device_here = 0;

bool may_run(const std::vector<Range>& ranges) {
  for (const Range& one : ranges) {
    if (is_block_of_device(one.begin, one.bytes) || is_pinned(one.begin, one.bytes)) continue;
    fail_for_good(kIllegalAddress);
    return false;
  }
  return true;
}

bool kernel_may_run(const std::vector<Range>& ranges) {
  for (const Range& one : ranges) {
    if (is_reached_from(device_here, one.begin)) continue;
    fail_for_good(kIllegalAddress);
    return false;
  }
  return may_run(ranges);
}

}  // namespace standin

using namespace standin;

DRIVER int cuDeviceGet(int* device, int number) {
  *device = number;
  return number >= 0 && number < devices() ? kSuccess : kInvalidDevice;
}

DRIVER int cuDeviceGetCount(int* count) {
  *count = devices();
  return kSuccess;
}

DRIVER int cuDeviceGetUuid_v2(unsigned char* bytes, int device) {
  std::memset(bytes, 7 + device, 16);
  return stopped("cuDeviceGetUuid");
}

DRIVER int cuDevicePrimaryCtxRetain(void** made, int device) {
  if (device < 0 || device >= devices()) return kInvalidDevice;
  const std::lock_guard lock(standin::mutex);
  *made = &primary_of(device);
  return stopped("cuDevicePrimaryCtxRetain");
}

// Like cudaDeviceReset: everything that was made in the device's primary context is gone.
DRIVER int cuDevicePrimaryCtxReset_v2(int device) {
  if (device < 0 || device >= devices()) return kInvalidDevice;
  const std::lock_guard lock(standin::mutex);
  Context& gone = primary_of(device);
  gone.gone = true;
  drop_pinned_of(&gone);
  return kSuccess;
}

DRIVER int cuCtxCreate_v2(void** made, unsigned, int device) {
  if (device < 0 || device >= devices()) return kInvalidDevice;
  const std::lock_guard lock(standin::mutex);
  *made = current = &others.emplace_back(Context{device, ++ids, false});
  return kSuccess;
}

DRIVER int cuCtxGetId(void* context, unsigned long long* id) {
  const std::lock_guard lock(standin::mutex);
  const auto* const one = context ? static_cast<Context*>(context) : current;
  if (!one) return kInvalidContext;
  *id = one->id;
  return one->gone ? kContextIsDestroyed : kSuccess;
}

DRIVER int cuCtxGetDevice(int* device) {
  *device = owner().device;
  return stopped_without_context("cuCtxGetDevice");
}

DRIVER int cuCtxGetCurrent(void** found) {
  *found = current;
  return stopped("cuCtxGetCurrent");
}

DRIVER int cuCtxSetCurrent(void* chosen) {
  current = static_cast<Context*>(chosen);
  return kSuccess;
}

DRIVER int cuCtxPushCurrent_v2(void* pushed) {
  if (!pushed) return kInvalidContext;
  below.push_back(current);
  current = static_cast<Context*>(pushed);
  return kSuccess;
}

DRIVER int cuCtxPopCurrent_v2(void** popped) {
  if (!current) return kInvalidContext;
  if (popped) *popped = current;
  current = below.empty() ? nullptr : below.back();
  if (!below.empty()) below.pop_back();
  return kSuccess;
}
