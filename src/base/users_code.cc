// Catches and rethrows exceptions of application code. When exception_of() takes an exception, the
// frames of the application code have been unwound and nothing else owns the exception, so it may
// be rethrown on any thread.
#include "base/users_code.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace weft {
namespace {

struct Catcher {
  void* back[5];  // the buffer for __builtin_setjmp()
  Exception caught;
};
constinit thread_local Catcher* catcher __attribute__((tls_model("initial-exec"))) = nullptr;
// A code address in the unwinder that the program uses; nullptr before the first exception.
std::atomic<const void*> programs_unwinder{nullptr};

// Registers the place where an exception is caught, until it is destroyed. Its destructor makes the
// compiler emit a personality routine for the enclosing function, without which no exception could
// be caught there.
class Catching {
 public:
  explicit Catching(Catcher& own) : before_(std::exchange(catcher, &own)) {}
  ~Catching() { catcher = before_; }
  Catching(const Catching&) = delete;
  Catching& operator=(const Catching&) = delete;

 private:
  Catcher* const before_;
};

// Returns the function of this name in the library that contains the address `unwinder`. That
// library may be invisible to a plain dlsym().
template <class Function>
Function* function_of(const void* unwinder, const char* name) {
  Dl_info info;
  void* const library =
      dladdr(unwinder, &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  void* const found = dlsym(library ? library : RTLD_DEFAULT, name);
  if (library) dlclose(library);
  return reinterpret_cast<Function*>(found);
}

bool is_of_cxx(const _Unwind_Exception& exception) {
  // The language part of a C++ exception's class, "C++\0". The four bytes before it name the vendor
  // of the C++ runtime.
  constexpr std::uint64_t kLanguage = 0x432B2B00;
  return (exception.exception_class & 0xFFFFFFFE) == kLanguage;
}

}  // namespace

Exception::Exception(_Unwind_Exception* raised) : raised_(raised) {
  count_as_thrown(-1);
}

// Changes the count that std::uncaught_exceptions() returns in the program's C++ runtime on this
// thread.
void Exception::count_as_thrown(int change) const {
  struct Globals {  // __cxa_eh_globals of the C++ ABI
    void* caught;
    unsigned uncaught;
  };
  static const auto globals =
      reinterpret_cast<Globals* (*)()>(dlsym(RTLD_DEFAULT, "__cxa_get_globals"));
  if (globals && is_of_cxx(*raised_)) globals()->uncaught += static_cast<unsigned>(change);
}

void Exception::throw_on() {
  if (!raised_) return;
  count_as_thrown(1);
  const auto raise = function_of<_Unwind_Reason_Code(_Unwind_Exception*)>(programs_unwinder.load(),
                                                                          "_Unwind_RaiseException");
  if (raise) raise(std::exchange(raised_, nullptr));
  // The call of raise() above returns only if nothing catches the exception.
  if (auto* const terminate = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "_ZSt9terminatev")))
    terminate();
  std::abort();
}

[[gnu::noinline]] Exception exception_of(void (*code)(void*), void* data) {
  Catcher own;
  const Catching catching(own);
  if (__builtin_setjmp(own.back) == 0) code(data);
  return own.caught;
}

bool catches(_Unwind_Action actions, _Unwind_Exception* raised, _Unwind_Context* context,
             const void* unwinder) {
  if (!catcher || (actions & _UA_FORCE_UNWIND) != 0) return false;
  if ((actions & _UA_HANDLER_FRAME) != 0) {
    programs_unwinder = unwinder;
    catcher->caught = Exception(raised);
    __builtin_longjmp(catcher->back, 1);
  }
  if ((actions & _UA_SEARCH_PHASE) == 0) return false;
  const auto begin_of =
      function_of<_Unwind_Ptr(_Unwind_Context*)>(unwinder, "_Unwind_GetRegionStart");
  constexpr Exception (*kCatcher)(void (*)(void*), void*) = exception_of;
  return begin_of && begin_of(context) == reinterpret_cast<_Unwind_Ptr>(kCatcher);
}

}  // namespace weft
