// Result<T>: a value or an Error, which a function returns in place of throwing an exception,
// because none may pass a thread or the C interface. An Error that came from the MPI library
// carries the library's own error code, so that the user's handler receives exactly that.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace weft {

struct Error {
  std::string message;
  int mpi_code = 0;  // 0 if the error did not come from the MPI library
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
