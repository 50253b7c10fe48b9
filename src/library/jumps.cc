// Wraps the C library's longjmp functions, since a program may leave an MPI call by longjmp(), for
// instance in an error handler (base/left_calls.h). <setjmp.h> is not included, because it renames
// one of these functions if _FORTIFY_SOURCE is defined.
#include <dlfcn.h>

#include <bit>
#include <cstdint>

#include "base/left_calls.h"

#define WEFT_JUMP extern "C" [[noreturn]] __attribute__((visibility("default"))) void

namespace weft {
namespace {

// Returns the stack pointer that longjmp() will restore; nullptr if unknown. glibc stores it in the
// jump buffer, encrypted with a secret of the process. to: the jump buffer.
const void* destination([[maybe_unused]] const void* to) {
#if defined(__x86_64__) && defined(__GLIBC__)
  constexpr int kStack = 6, kTurned = 17;
  std::uintptr_t secret;
  asm("mov %%fs:0x30, %0" : "=r"(secret));
  const std::uintptr_t mixed = static_cast<const std::uintptr_t*>(to)[kStack];
  return reinterpret_cast<const void*>(std::rotr(mixed, kTurned) ^ secret);
#else
  return nullptr;
#endif
}

// Wraps one of the C library's longjmp functions. The C library's function is looked up when Weft's
// library is loaded, since dlsym() must not be called in a signal handler, from which a program may
// jump.
class Jump {
 public:
  constexpr explicit Jump(const char* name) : name_(name) {}
  void find() { next_ = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_)); }
  [[noreturn]] void operator()(void* to, int value) {
    leaves_frames(destination(to));
    // If another library's constructor jumps before Weft's library is initialised, the C library's
    // function has not been looked up yet.
    if (!next_) find();
    next_(to, value);
    __builtin_unreachable();
  }

 private:
  using Function = void(void*, int);
  const char* const name_;
  Function* next_ = nullptr;
};

constinit Jump plain("longjmp"), without_mask("_longjmp"), with_mask("siglongjmp"),
    checked("__longjmp_chk");

[[gnu::constructor]] void find_jumps() {
  for (Jump* jump : {&plain, &without_mask, &with_mask, &checked}) jump->find();
}

}  // namespace
}  // namespace weft

WEFT_JUMP longjmp(void* to, int value) noexcept {
  weft::plain(to, value);
}

WEFT_JUMP _longjmp(void* to, int value) noexcept {
  weft::without_mask(to, value);
}

WEFT_JUMP siglongjmp(void* to, int value) noexcept {
  weft::with_mask(to, value);
}

WEFT_JUMP __longjmp_chk(void* to, int value) noexcept {
  weft::checked(to, value);
}
