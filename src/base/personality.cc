// Decides what happens to Weft's stack frames when an exception or the end of the thread unwinds
// through them: they are skipped without destructors, as longjmp() would do (left_calls.h). The
// program's libgcc_s does the unwinding, and its data structures may differ from those of the C++
// runtime that is linked into Weft. weft_hide_all_but() in CMakeLists.txt therefore makes the
// linker replace the personality routine of that runtime with the one in this file (--wrap).
#include <dlfcn.h>
#include <unwind.h>

#include <cstdint>

#include "base/left_calls.h"
#include "base/own_code.h"
#include "base/users_code.h"

namespace weft {
namespace {

// Returns the stack address of the frame that will catch the exception; nullptr if unknown. The
// unwinders of GCC and LLVM store this address in the exception; nongnu.org's libunwind stores a
// code address there, which is of no use. If the thread ends, no frame remains, and the highest
// address is returned.
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
