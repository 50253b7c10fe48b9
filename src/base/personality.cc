// Handles Weft's stack frames between the application's call and its callbacks when an exception or
// the end of the thread passes them. The frames are skipped, as by a jump (left_calls.h): the
// program's libgcc_s unwinds, while Weft's hidden C++ runtime belongs to another unwinder with
// perhaps other data structures. weft_hide_all_but() in CMakeLists.txt makes the linker call the
// function of this file in place of the runtime's own personality routine (--wrap).
#include <dlfcn.h>
#include <unwind.h>

#include <cstdint>

#include "base/left_calls.h"
#include "base/own_code.h"
#include "base/users_code.h"

namespace weft {
namespace {

// Returns the stack address of the frame that catches the exception; nullptr if unknown. The
// unwinders of GCC and LLVM store it in the exception, while nongnu.org's libunwind stores a code
// address there. The end of a thread leaves all frames.
const void* destination(_Unwind_Action actions, const _Unwind_Exception& exception) {
  if ((actions & _UA_FORCE_UNWIND) != 0) return reinterpret_cast<const void*>(UINTPTR_MAX);
  const auto noted = reinterpret_cast<const void*>(std::uintptr_t{exception.private_2});
  Dl_info object;
  return dladdr(noted, &object) == 0 ? noted : nullptr;
}

}  // namespace
}  // namespace weft

extern "C" {

_Unwind_Reason_Code __real___gxx_personality_v0(int, _Unwind_Action, _Unwind_Exception_Class,
                                                _Unwind_Exception*, _Unwind_Context*);

_Unwind_Reason_Code __wrap___gxx_personality_v0(int version, _Unwind_Action actions,
                                                _Unwind_Exception_Class kind,
                                                _Unwind_Exception* exception,
                                                _Unwind_Context* context) {
  const void* const unwinder = __builtin_return_address(0);
  if (weft::is_own_code(unwinder))
    return __real___gxx_personality_v0(version, actions, kind, exception, context);
  if (weft::catches(actions, exception, context, unwinder)) return _URC_HANDLER_FOUND;
  if ((actions & _UA_CLEANUP_PHASE) != 0)
    weft::leaves_frames(weft::destination(actions, *exception));
  return _URC_CONTINUE_UNWIND;
}

}  // extern "C"
