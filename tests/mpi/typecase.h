// TypeCase: a datatype with the positions of its numbers and with operators on it, and guarded
// buffers. Holes, lower bounds and the bytes around a buffer must stay unchanged, which can only be
// checked if the positions of the numbers are known.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

namespace conformance {

inline constexpr int kTypes = 7;
inline constexpr int kModulus = 127;
inline constexpr int kValues = kModulus * kModulus;  // numbers are in [0, kValues)
// Numbers of type byte are in [0, kByteModulus²).
inline constexpr int kByteModulus = 11;

enum class Number { integer, real, byte };

struct Component {
  std::ptrdiff_t offset;
  Number number;
};

// An operator. `combine` does with two numbers what the operator does with elements; the left one
// is from the lower rank.
struct Operator {
  const char* name;
  MPI_Op op;
  int (*combine)(int left, int right);
  MPI_User_function* function;  // nullptr if predefined
  bool commutes;
};

struct TypeCase {
  std::string name;
  MPI_Datatype type;
  std::ptrdiff_t extent;
  std::vector<Component> components;
  bool predefined;
  std::vector<Operator> operators;

  int values() const {
    return components[0].number == Number::byte ? kByteModulus * kByteModulus : kValues;
  }
};

class TypeCases {
 public:
  TypeCases();
  ~TypeCases();
  TypeCases(const TypeCases&) = delete;
  TypeCases& operator=(const TypeCases&) = delete;
  const std::vector<TypeCase>& all() const { return cases_; }

 private:
  std::vector<TypeCase> cases_;
};

// A buffer between guard zones. Every byte that belongs to no number has a known value.
class Buffer {
 public:
  Buffer() : Buffer(0) {}
  explicit Buffer(std::size_t bytes);

  void* data() { return storage_.data() + kGuard; }
  void clear();
  // Stores the number at `component` of the element that begins `at` bytes after data().
  void store(std::ptrdiff_t at, const Component& component, int value);
  // Copies the bytes between the two positions from `other`.
  void copy(const Buffer& other, std::ptrdiff_t from, std::ptrdiff_t to);
  // Compares all bytes: numbers, holes and guard zones.
  bool operator==(const Buffer& other) const { return storage_ == other.storage_; }
  // Returns the position of the first difference, relative to data().
  std::ptrdiff_t difference(const Buffer& other) const;

 private:
  static constexpr std::ptrdiff_t kGuard = 128;  // bytes of each guard zone
  std::vector<unsigned char> storage_;
};

}  // namespace conformance
