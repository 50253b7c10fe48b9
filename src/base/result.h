// Result<T> is the return type of functions that may fail: it holds a value or an Error. Exceptions
// are not used for this, because none may pass a thread or the C interface. An Error that came from
// the MPI library carries that library's error code, so that the user's error handler receives
// exactly that code.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace weft {

struct Error {
  std::string message;
  int mpi_code = 0;  // error code of the MPI library; 0 if the error is Weft's own
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::move(value)) {}
  Result(Error error) : content_(std::move(error)) {}

  explicit operator bool() const { return content_.index() == 0; }
  T& value() { return std::get<0>(content_); }
  const T& value() const { return std::get<0>(content_); }
  T& operator*() { return value(); }
  T* operator->() { return &value(); }
  const T& operator*() const { return value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return std::get<1>(content_); }

 private:
  std::variant<T, Error> content_;
};

}  // namespace weft
