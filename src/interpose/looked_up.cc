// Calls that are looked up in the MPI library itself, as interpreters do, would go past the
// wrappers, and complete or start requests of Weft's behind its back. So a look-up that would find
// a wrapped call in the library finds the wrapper, and objects opened with RTLD_DEEPBIND are bound
// to it.
//
// The dynamic linker goes by who calls it: RTLD_NEXT, the caller's directories. Hence these
// functions leave by a jump, so that the program's code stays the caller.
#include "interpose/looked_up.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <string_view>

#include "base/loaded_object.h"
#include "interpose/opened_deep.h"
#include "library/linker.h"
#include "library/search.h"

#if __has_cpp_attribute(clang::musttail)
#define WEFT_LEAVES_BY_JUMP
#define WEFT_JUMP [[clang::musttail]] return
#else  // GCC jumps where it optimises
#define WEFT_LEAVES_BY_JUMP __attribute__((optimize("O2")))
#define WEFT_JUMP return
#endif

namespace weft::interpose {
namespace {

// Its static needs no guard, as in linker().
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

// The library, Weft's other parts, and tools behind Weft, to which its wrappers lead: one that is
// sent back to them would never come to an end.
bool is_behind_wrapper(const void* caller, const char* call) {
  const link_map* const object = object_of(caller);
  if (!object || is_before_weft(object)) return false;
  const std::string_view file = object->l_name;
  return file.substr(file.rfind('/') + 1).rfind("libweft-", 0) == 0 ||
         LoadedObject(*object).defined(*call == 'P' ? call + 1 : call);
}

// Returns whether this look-up may have to find a wrapper. RTLD_NEXT asks for the objects behind
// the caller, which include Weft or not, depending on the caller's place.
__attribute__((noinline)) bool concerns_weft(const void* handle, const char* symbol,
                                             const void* caller) {
  bind_what_was_opened();
  return is_named_like_a_call(symbol) && handle != RTLD_NEXT &&
         LoadedObject(*own_object()).defined(symbol) && !is_behind_wrapper(caller, symbol) &&
         library_extent().end != 0;
}

void* look_up(void* handle, const char* symbol) {
  const Extent library = library_extent();
  void* const found = linker().dlsym(handle, symbol);
  return library.holds(found) ? LoadedObject(*own_object()).defined(symbol) : found;
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

}  // namespace weft::interpose

// A sanitizer's runtime looks up the C library's functions before code that it instruments can run.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
using weft::linker;

// Under names of their own, since Clang jumps out of no function that the header declares noexcept.
#define WEFT_SHOWN extern "C" __attribute__((visibility("default")))
WEFT_SHOWN void* weft_shown_dlsym(void* handle, const char* symbol) asm("dlsym");
WEFT_SHOWN void* weft_shown_dlopen(const char* file, int mode) asm("dlopen");

WEFT_LEAVES_BY_JUMP void* weft_shown_dlsym(void* handle, const char* symbol) {
  void* (*way)(void*, const char*) = linker().dlsym;
  if (weft::interpose::concerns_weft(handle, symbol, __builtin_return_address(0)))
    way = weft::interpose::look_up;
  WEFT_JUMP way(handle, symbol);
}

WEFT_LEAVES_BY_JUMP void* weft_shown_dlopen(const char* file, int mode) {
  weft::interpose::bind_what_was_opened();
  weft::interpose::note_opening(mode);
  void* (*const way)(const char*, int) = linker().dlopen;
  WEFT_JUMP way(file, mode);
}
#endif
