// Code of the application's that runs below state of Weft's, or on a thread of Weft's: an operator.
// An exception out of it must not pass there. It is caught, and thrown on where the application
// waits for the result.
// Why not by catch and throw: the program's C++ runtime threw it, and Weft has one of its own.
#pragma once

#include <unwind.h>

#include <utility>

namespace weft {

// An exception of the program's, which nobody has caught yet.
class Exception {
 public:
  Exception() = default;
  explicit Exception(_Unwind_Exception* raised);

  explicit operator bool() const { return raised_ != nullptr; }
  // In the caller. Without an exception it returns.
  void throw_on();

 private:
  void count_as_thrown(int change) const;

  _Unwind_Exception* raised_ = nullptr;
};

// Runs `code` and returns the exception that it throws; none: it has returned.
Exception exception_of(void (*code)(void*), void* data);

template <class Code>
Exception exception_of(const Code& code) {
  const auto call = [](void* data) { (*static_cast<const Code*>(data))(); };
  return exception_of(call, const_cast<Code*>(&code));
}

// Asked for each of Weft's frames that an exception meets: whether exception_of() is to catch it.
// Does not return where that is the next to happen.
bool catches(_Unwind_Action actions, _Unwind_Exception* raised, _Unwind_Context* context,
             const void* unwinder);

}  // namespace weft
