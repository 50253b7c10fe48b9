// Implements dlsym() and dlopen() for the program. Interpreters look up MPI calls in the MPI
// library itself. Such calls would bypass the wrappers, and complete or start Weft's requests
// unseen. Therefore a look-up that would find a wrapped call in the library returns the wrapper,
// and objects opened with RTLD_DEEPBIND are bound to it.
//
// The dynamic linker's result depends on its caller (RTLD_NEXT, the caller's directories).
// Therefore these functions end by a tail call, so that the program's code stays the caller.
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
#else  // here the attribute is needed, since GCC makes tail calls only with optimisation
#define WEFT_LEAVES_BY_JUMP __attribute__((optimize("O2")))
#define WEFT_JUMP return
#endif

namespace weft {
namespace {

// Returns the loaded object that contains this code. The static variable is constant-initialised,
// so that it needs no guard.
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

// Returns whether the caller lies behind Weft's wrappers: the MPI library, other parts of Weft, or
// a tool that the wrappers call. Its look-ups must not find the wrappers, which would cause endless
// recursion.
bool is_behind_wrapper(const void* caller, const char* call) {
  const link_map* const object = object_of(caller);
  if (!object || is_before_weft(object)) return false;
  return is_wefts(*object) || LoadedObject(*object).defined(*call == 'P' ? call + 1 : call);
}

// Returns whether this look-up may have to return a wrapper. It need not for RTLD_NEXT, which
// searches the objects after the caller, with or without Weft among them.
__attribute__((noinline)) bool concerns_weft(const void* handle, const char* symbol,
                                             const void* caller) {
  bind_what_was_opened();
  return is_named_like_a_call(symbol) && handle != RTLD_NEXT &&
         LoadedObject(*own_object()).defined(symbol) && !is_behind_wrapper(caller, symbol) &&
         library_extent().end != 0;
}

// A look-up may also find another wrapper of Weft's: the advisor's library comes before that of
// the engines.
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

// The following functions are not defined in builds with a sanitizer, whose runtime looks up C
// library functions before instrumented code can run.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
using weft::linker;

// The functions have C++ names of their own, since Clang makes no tail call from a function that
// the header declares noexcept.
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
