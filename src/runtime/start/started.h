// Started is the result of offering a collective call to Weft.
#pragma once

#include "runtime/start/plan.h"

namespace weft {

// The result of offering a collective call to Weft: the answer, which the thread may cache, and the
// return code if Weft has carried out or started the call.
struct Started : Answer {
  // True if Weft has taken the call, and the application has its request, if any. False if nothing
  // was sent, so that the MPI library must carry the call out.
  bool taken = false;
  int code = 0;  // return code for the application if `taken` is true
  // The class of similar calls for which engine auto must learn how long the MPI library takes for
  // this call; nullptr if it need not.
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
