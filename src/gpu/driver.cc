#include "gpu/driver.h"

#include <dlfcn.h>

#include "gpu/image.h"

namespace weft::gpu {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

Result<Driver> load() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library) return Error{std::string("there is no driver of CUDA's here (") + kLibrary + ")"};
  Driver found;
  const char* lacking = nullptr;
#define WEFT_FIND(member, name, parameters)                                  \
  found.member = reinterpret_cast<int(*) parameters>(dlsym(library, #name)); \
  if (!found.member) lacking = #name;
  WEFT_DRIVER_CALLS(WEFT_FIND)
  const char* const needed = lacking;
  WEFT_OPTIONAL_DRIVER_CALLS(WEFT_FIND)
#undef WEFT_FIND
  lacking = needed;
  if (lacking) {
    return Error{std::string("CUDA's driver is too old: it lacks ") + lacking +
                 "; Weft needs that of CUDA " + oldest_cuda() + " or later"};
  }
  return found;
}

bool shares_managed_memory(const Driver& driver) {
  int device = 0, shares = 0;
  return driver.current_device(&device) == kSuccess &&
         driver.device_attribute(&shares, kDeviceSharesManagedMemory, device) == kSuccess &&
         shares != 0;
}

}  // namespace

std::string oldest_cuda() {
  constexpr int kOfFunctions = 11;
  const int major = weft_kernel_image_cuda / 1000;
  return major > kOfFunctions ? std::to_string(major) + ".0" : "11.4";
}

Error Driver::error(const char* call, int code) const {
  const char* name = nullptr;
  if (error_name(code, &name) != kSuccess || !name) name = "an unknown error";
  return Error{std::string(call) + ": " + name};
}

Result<const Driver*> driver() {
  static const Result<Driver> found = load();
  if (!found) return found.error();
  return &*found;
}

bool is_of_device(const Driver& driver, const void* memory) {
  const auto address = reinterpret_cast<Address>(memory);
  unsigned type = 0, managed = 0;
  if (driver.attribute(&type, kAttributeMemoryType, address) != kSuccess) return false;
  if (type != kMemoryOfDevice) return false;
  const bool known = driver.attribute(&managed, kAttributeIsManaged, address) == kSuccess;
  return !known || managed == 0 || !shares_managed_memory(driver);
}

}  // namespace weft::gpu
