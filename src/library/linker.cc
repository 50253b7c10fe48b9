#include "library/linker.h"

#include <link.h>

#include <atomic>

#include "base/loaded_object.h"

namespace weft {
namespace {

// Searches the objects loaded after this one for a function. They are searched directly, since the
// usual means, dlsym(RTLD_NEXT), is itself being looked for.
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

// Returns the linker's functions (linker.h). No guarded static variable is used here: some
// compilers' guards lock a mutex, and a sanitizer's runtime looks up functions before its own
// pthread_mutex_lock works.
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
