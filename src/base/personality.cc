// Handles Weft's frames between the application's call and its callbacks when an exception or the
// end of the thread passes them. They are skipped, as by a jump (left_calls.h): the program's
// libgcc_s unwinds, and Weft's hidden C++ runtime belongs to another unwinder, whose contexts may
// look different. weft_hide_all_but() in CMakeLists.txt makes the linker call this in place of the
// runtime's own routine (--wrap).
#include <unwind.h>

#include "base/own_code.h"
#include "base/this_thread.h"
#include "base/users_code.h"

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
  if ((actions & _UA_CLEANUP_PHASE) != 0 && weft::this_thread.is_inside())
    weft::this_thread.was_left = 1;
  return _URC_CONTINUE_UNWIND;
}

}  // extern "C"
