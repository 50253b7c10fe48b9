#include "library/linker.h"

#include <link.h>

#include <atomic>

#include "base/loaded_object.h"

namespace weft {
namespace {

// Sets `function` to the first definition of `name` in the objects that come after `object` in the
// search order. It searches their symbol tables itself, since dlsym(RTLD_NEXT) is one of the
// functions that are being looked for.
template <class Function>
void find_behind(const link_map* object, const char* name, Function& function) {
  for (object = object->l_next; object; object = object->l_next)
    if (void* const found = LoadedObject(*object).defined(name)) {
      function = reinterpret_cast<Function>(found);
      return;
    }
}

Linker find_linker() {
  Linker found{};
  const link_map* const own = object_of(reinterpret_cast<const void*>(&find_linker));
  find_behind(own, "dlsym", found.dlsym);
  find_behind(own, "dlopen", found.dlopen);
  return found;
}

}  // namespace

const link_map* object_of(const void* address) {
  Dl_info info;
  link_map* object = nullptr;
  return dladdr1(address, &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) ? object
                                                                                     : nullptr;
}

// Returns dlsym() and dlopen() (linker.h). It stores them in atomics, not in a static local
// variable with an initialiser: the compiler may guard such a variable by a mutex, and a
// sanitizer's runtime calls this function before its own pthread_mutex_lock() works.
Linker linker() {
  static constinit std::atomic<decltype(Linker::dlsym)> dlsym{};
  static constinit std::atomic<decltype(Linker::dlopen)> dlopen{};
  if (!dlopen.load(std::memory_order_acquire)) {
    const Linker found = find_linker();
    dlsym.store(found.dlsym, std::memory_order_relaxed);
    dlopen.store(found.dlopen, std::memory_order_release);
  }
  return {dlsym.load(std::memory_order_relaxed), dlopen.load(std::memory_order_relaxed)};
}

}  // namespace weft
