// The C library's jumps, which the application calls here first: one may leave a call of MPI's, out
// of an error handler, say (base/left_calls.h). No frame of Weft's is looked for then; the next
// call does that. <setjmp.h> is left out: where calls are fortified it gives one of these another's
// name.
#include <dlfcn.h>

#include "base/left_calls.h"

#define WEFT_JUMP extern "C" [[noreturn]] __attribute__((visibility("default"))) void

namespace weft {
namespace {

// Looked up when the library is loaded, since a jump may be made in a signal's handler.
class Jump {
 public:
  constexpr explicit Jump(const char* name) : name_(name) {}
  void find() { next_ = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_)); }
  [[noreturn]] void operator()(void* to, int value) {
    if (this_thread.is_inside()) this_thread.was_left = 1;
    if (!next_) find();  // before that
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
