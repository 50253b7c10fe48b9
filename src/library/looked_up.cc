// Implements dlsym() and dlopen() for the program. Interpreters such as Python look up MPI calls
// directly in the MPI library. Such calls would bypass Weft's wrappers, and would start or complete
// requests without Weft's knowledge. Therefore dlsym() returns Weft's wrapper where the dynamic
// linker would return the MPI library's function. Objects opened with RTLD_DEEPBIND are bound to
// the wrappers, too.
//
// The dynamic linker's result depends on the code that calls dlsym() (for RTLD_NEXT and for library
// search paths). Therefore Weft's functions end with a tail call, so that the dynamic linker sees
// the program's code as its caller.
#include "library/looked_up.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <string_view>

#include "base/loaded_object.h"
#include "library/linker.h"
#include "library/opened_deep.h"
#include "library/search.h"

#if __has_cpp_attribute(clang::musttail)
#define WEFT_LEAVES_BY_JUMP
#define WEFT_JUMP [[clang::musttail]] return
#else  // GCC makes tail calls only with optimisation, which debug builds lack
#define WEFT_LEAVES_BY_JUMP __attribute__((optimize("O2")))
#define WEFT_JUMP return
#endif

namespace weft {
namespace {

// Returns the loaded object that contains this code. Its static variable has a constant
// initialiser, so that the compiler generates no guard with a mutex for it.
const link_map* own_object() {
  static constinit std::atomic<const link_map*> own{};
  if (!own.load(std::memory_order_acquire))
    own.store(object_of(reinterpret_cast<const void*>(&own_object)), std::memory_order_release);
  return own.load(std::memory_order_relaxed);
}

bool is_named_like_a_call(const char* symbol) {
  if (*symbol == 'P') ++symbol;
  return symbol[0] == 'M' && symbol[1] == 'P' && symbol[2] == 'I' && symbol[3] == '_';
}

bool is_before_weft(const link_map* object) {
  for (const link_map* other = own_object(); other; other = other->l_prev)
    if (other == object) return true;
  return false;
}

bool is_wefts(const link_map& object) {
  const std::string_view file = object.l_name;
  return file.substr(file.rfind('/') + 1).rfind("libweft-", 0) == 0;
}

// Returns whether `caller` lies in code that Weft's wrappers call: the MPI library, another part of
// Weft, or a tool that comes after Weft in the chain of wrappers. If dlsym() gave such code a
// wrapper of Weft's, calls would recurse endlessly.
bool is_behind_wrapper(const void* caller, const char* call) {
  const link_map* const object = object_of(caller);
  if (!object || is_before_weft(object)) return false;
  return is_wefts(*object) || LoadedObject(*object).defined(*call == 'P' ? call + 1 : call);
}

// Returns whether dlsym() may have to return a wrapper of Weft's for this look-up. For RTLD_NEXT it
// need not, because the dynamic linker then searches the objects after the one that calls, as it
// would without Weft.
__attribute__((noinline)) bool concerns_weft(const void* handle, const char* symbol,
                                             const void* caller) {
  bind_what_was_opened();
  return is_named_like_a_call(symbol) && handle != RTLD_NEXT &&
         LoadedObject(*own_object()).defined(symbol) && !is_behind_wrapper(caller, symbol) &&
         library_extent().end != 0;
}

// Looks up an MPI call as dlsym() does, and returns this library's wrapper if the result lies in
// the MPI library or in another library of Weft's. The advisor's library may come before the one
// with the collectives.
void* look_up(void* handle, const char* symbol) {
  const Extent library = library_extent();
  void* const found = linker().dlsym(handle, symbol);
  const link_map* const object = found ? object_of(found) : nullptr;
  const bool passes_by = object && (library.holds(found) || is_wefts(*object));
  return passes_by ? LoadedObject(*own_object()).defined(symbol) : found;
}

}  // namespace

bool is_shown(const char* symbol) {
  const bool of_linker = symbol[0] == 'd' && symbol[1] == 'l';
  return (of_linker || is_named_like_a_call(symbol)) && LoadedObject(*own_object()).defined(symbol);
}

void* first_definition(const char* symbol) {
  const link_map* first = own_object();
  while (first->l_prev) first = first->l_prev;
  for (;; first = first->l_next)
    if (void* const found = LoadedObject(*first).defined(symbol)) return found;
}

}  // namespace weft

// Builds with a sanitizer do not replace dlsym() and dlopen(), because the sanitizer's runtime
// looks up C library functions before instrumented code can run.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
using weft::linker;

// These functions have C++ names of their own besides the exported ones. The C library's header
// declares dlsym() and dlopen() as noexcept, and Clang makes no tail call from a noexcept function.
#define WEFT_SHOWN extern "C" __attribute__((visibility("default")))
WEFT_SHOWN void* weft_shown_dlsym(void* handle, const char* symbol) asm("dlsym");
WEFT_SHOWN void* weft_shown_dlopen(const char* file, int mode) asm("dlopen");

WEFT_LEAVES_BY_JUMP void* weft_shown_dlsym(void* handle, const char* symbol) {
  void* (*way)(void*, const char*) = linker().dlsym;
  if (weft::concerns_weft(handle, symbol, __builtin_return_address(0))) way = weft::look_up;
  WEFT_JUMP way(handle, symbol);
}

WEFT_LEAVES_BY_JUMP void* weft_shown_dlopen(const char* file, int mode) {
  weft::bind_what_was_opened();
  weft::note_opening(mode);
  void* (*const way)(const char*, int) = linker().dlopen;
  WEFT_JUMP way(file, mode);
}
#endif
