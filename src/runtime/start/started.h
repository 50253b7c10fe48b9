// Started is the result of offering a collective call to Weft.
#pragma once

#include "runtime/start/plan.h"

namespace weft {

// The result of offering a collective call to Weft: the answer, which the thread may cache, and the
// return code if Weft has carried out or started the call.
struct Started : Answer {
  bool taken = false;  // Weft carries the call out, and the application has its request; otherwise
                       // no message was posted
  bool is_watched = false;  // `watch` needs to know how long the library takes for the call
  int code = 0;             // return code for the application, if `taken`
  // The call class that needs to know how long the library takes for the call; nullptr if none
  // does.
  CallClass* call_class = nullptr;
};

inline Started taken(int code, const Answer& answer = {}) {
  return {answer, true, false, code};
}
inline Started declined(Answer answer) {
  return {answer};
}
inline Started declined(Reason reason, Answer answer = {}) {
  answer.reason = reason;
  return {answer};
}

}  // namespace weft
