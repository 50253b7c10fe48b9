// Runs code of the application's, such as an operator, below state of Weft's or on a thread of
// Weft's. An exception must not pass there: it is caught, and rethrown where the application waits
// for the result. catch and throw cannot be used: the program's C++ runtime threw it, and Weft has
// another one.
#pragma once

#include <unwind.h>

#include <utility>

namespace weft {

// An exception of the program's that nobody has caught yet.
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

// Runs `code` and returns the exception that it throws; an empty one if it returns.
Exception exception_of(void (*code)(void*), void* data);

template <class Code>
Exception exception_of(const Code& code) {
  const auto call = [](void* data) { (*static_cast<const Code*>(data))(); };
  return exception_of(call, const_cast<Code*>(&code));
}

// Is asked for each of Weft's frames that an exception meets: whether exception_of() is to catch
// it. Does not return if that is the next to happen.
bool catches(_Unwind_Action actions, _Unwind_Exception* raised, _Unwind_Context* context,
             const void* unwinder);

}  // namespace weft
