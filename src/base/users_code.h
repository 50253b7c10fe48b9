// Runs application code, such as a reduction operator, in a place where an exception must not pass:
// above stack frames of Weft, or on a thread of Weft. An exception is caught, and rethrown where
// the application waits for the result. Plain try and catch cannot be used, because the exception
// belongs to the program's C++ runtime, and Weft is linked with a C++ runtime of its own.
#pragma once

#include <unwind.h>

#include <utility>

namespace weft {

// Holds an exception of the application that Weft has caught and not yet rethrown.
class Exception {
 public:
  Exception() = default;
  explicit Exception(_Unwind_Exception* raised);

  explicit operator bool() const { return raised_ != nullptr; }
  // Rethrows the exception. Returns if there is none.
  void throw_on();

 private:
  void count_as_thrown(int change) const;

  _Unwind_Exception* raised_ = nullptr;
};

// Runs `code`. Returns the exception that `code` throws, or an empty Exception if it returns
// normally.
Exception exception_of(void (*code)(void*), void* data);

template <class Code>
Exception exception_of(const Code& code) {
  const auto call = [](void* data) { (*static_cast<const Code*>(data))(); };
  return exception_of(call, const_cast<Code*>(&code));
}

// Decides whether a stack frame of Weft catches an exception. The personality routine calls it for
// each such frame. In the search phase it returns whether exception_of() will catch the exception
// in this frame. In the cleanup phase it jumps back into exception_of() and does not return.
bool catches(_Unwind_Action actions, _Unwind_Exception* raised, _Unwind_Context* context,
             const void* unwinder);

}  // namespace weft
