// Started: the result of a collective call that was offered to Weft.
#pragma once

#include "runtime/start/plan.h"

namespace weft {

// It includes the answer that the thread may cache, with the reason if the call is the library's.
struct Started : Answer {
  bool taken = false;  // Weft has it, and the request is the application's; else nothing was posted
  int code = 0;        // of a call that Weft has taken: the application's
  // The call class that wants to know how the library carries the call out; nullptr: none does.
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
