// The frames between operator and exception_of() have been unwound when it takes the exception
// over. From there on it belongs to nobody, and may be raised anew on any thread.
#include "base/users_code.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace weft {
namespace {

struct Catcher {
  void* back[5];  // of __builtin_setjmp
  Exception caught;
};
constinit thread_local Catcher* catcher __attribute__((tls_model("initial-exec"))) = nullptr;
std::atomic<const void*> programs_unwinder{nullptr};  // an address in it

// Its destructor has the compiler name a personality for the frame that it lies in.
class Catching {
 public:
  explicit Catching(Catcher& own) : before_(std::exchange(catcher, &own)) {}
  ~Catching() { catcher = before_; }
  Catching(const Catching&) = delete;
  Catching& operator=(const Catching&) = delete;

 private:
  Catcher* const before_;
};

// Returns a function of the unwinder, which may be in a library that the program does not see.
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
  constexpr std::uint64_t kLanguage = 0x432B2B00;  // "C++\0"; before it the maker of the runtime
  return (exception.exception_class & 0xFFFFFFFE) == kLanguage;
}

}  // namespace

Exception::Exception(_Unwind_Exception* raised) : raised_(raised) {
  count_as_thrown(-1);
}

// Changes the program's std::uncaught_exceptions() on this thread.
void Exception::count_as_thrown(int change) const {
  struct Globals {  // as the C++ ABI has them
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
  // This is reached if nobody catches it.
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
