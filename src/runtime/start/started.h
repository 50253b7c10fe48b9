// Started: the result of a collective call that was offered to Weft.
#pragma once

#include "runtime/start/plan.h"

namespace weft {

// The answer to a call, which the thread may cache, and the result of the call if Weft has carried
// it out or started it.
struct Started : Answer {
  bool taken = false;  // Weft carries the call out, and the application has its request; otherwise
                       // no message was posted
  int code = 0;        // return code for the application, if `taken`
  // The call class that needs to know how long the library takes for the call; nullptr if none
  // does.
  CallClass* call_class = nullptr;
};

inline Started taken(int code, const Answer& answer = {}) {
  return {answer, true, code};
}
inline Started declined(Answer answer) {
  return {answer};
}
inline Started declined(Reason reason, Answer answer = {}) {
  answer.reason = reason;
  return {answer};
}

}  // namespace weft
