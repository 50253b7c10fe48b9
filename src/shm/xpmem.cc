// Opens the XPMEM library, and defines the constants of its C interface.
#include "shm/xpmem.h"

#include <dlfcn.h>
#include <unistd.h>

#include <string>

namespace weft {
namespace {

constexpr const char* kDevice = "/dev/xpmem";
constexpr const char* kLibrary = "libxpmem.so.0";
// Has the value of XPMEM_MAXADDR_SIZE.
constexpr std::size_t kAllAddresses = static_cast<std::size_t>(-1);
constexpr int kReadAndWrite = 2;  // has the value of XPMEM_RDWR
// Has the value of XPMEM_PERMIT_MODE.
constexpr int kByMode = 1;
constexpr std::uintptr_t kOwnerOnly = 0600;

template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

bool Xpmem::may_be_there(std::string_view which) {
  return which != kNone && (which != kOfSystem || access(kDevice, R_OK | W_OK) == 0);
}

Result<Xpmem> Xpmem::open(std::string_view which) {
  if (which == kNone) return Error{"XPMEM is switched off"};
  const std::string file = which == kOfSystem ? kLibrary : std::string(which);
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return Error{std::string("XPMEM: ") + dlerror()};
  Xpmem found;
  const bool whole =
      find(library, "xpmem_make", found.make) && find(library, "xpmem_get", found.get) &&
      find(library, "xpmem_attach", found.attach) && find(library, "xpmem_detach", found.detach);
  if (!whole) return Error{"XPMEM: " + file + " lacks functions of libxpmem"};
  return found;
}

std::int64_t Xpmem::make_all() const {
  return make(nullptr, kAllAddresses, kByMode, reinterpret_cast<void*>(kOwnerOnly));
}

std::int64_t Xpmem::get_all(std::int64_t segment) const {
  return get(segment, kReadAndWrite, kByMode, nullptr);
}

std::byte* Xpmem::attach_at(std::int64_t permit, std::uintptr_t address, std::size_t bytes) const {
  void* const at = attach({permit, static_cast<std::int64_t>(address)}, bytes, nullptr);
  return reinterpret_cast<std::intptr_t>(at) == -1 ? nullptr : static_cast<std::byte*>(at);
}

}  // namespace weft
