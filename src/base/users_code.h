// Runs application code, such as a reduction operator, above frames of Weft or on a thread of Weft.
// An exception must not pass these: it is caught, and rethrown where the application waits for the
// result. catch and throw cannot be used, because the program's C++ runtime threw it, and Weft has
// a C++ runtime of its own.
#pragma once

#include <unwind.h>

#include <utility>

namespace weft {

// An exception of the program that has not been caught yet.
class Exception {
 public:
  Exception() = default;
  explicit Exception(_Unwind_Exception* raised);

  explicit operator bool() const { return raised_ != nullptr; }
  // Throws the exception in the caller; returns if there is none.
  void throw_on();

 private:
  void count_as_thrown(int change) const;

  _Unwind_Exception* raised_ = nullptr;
};

// Runs `code` and returns the exception that it throws; an empty Exception if it returns.
Exception exception_of(void (*code)(void*), void* data);

template <class Code>
Exception exception_of(const Code& code) {
  const auto call = [](void* data) { (*static_cast<const Code*>(data))(); };
  return exception_of(call, const_cast<Code*>(&code));
}

// Decides whether a frame catches an exception. Is called for each frame of Weft that the exception
// meets. In the search phase it returns whether exception_of() will catch the exception in this
// frame. In the cleanup phase it continues in exception_of() and does not return.
bool catches(_Unwind_Action actions, _Unwind_Exception* raised, _Unwind_Context* context,
             const void* unwinder);

}  // namespace weft
