// TypeCase: a datatype with the places of its numbers and the operators on it, and guarded buffers.
// Why: holes, lower bounds and the bytes around a buffer must stay as they were; that can only be
// checked by someone who knows where the numbers lie.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

namespace conformance {

inline constexpr int kTypes = 7;
inline constexpr int kModulus = 127;
inline constexpr int kValues = kModulus * kModulus;  // numbers lie in [0, kValues)
inline constexpr int kByteModulus = 11;              // those of bytes in [0, kByteModulus²)

enum class Number { integer, real, byte };

struct Component {
  std::ptrdiff_t offset;
  Number number;
};

// `combine` does on numbers what the operator does on elements: the left one is the lower rank's.
struct Operator {
  const char* name;
  MPI_Op op;
  int (*combine)(int left, int right);
  MPI_User_function* function;  // null: predefined
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

// Bytes between guard zones; every byte that is no number has a known pattern.
class Buffer {
 public:
  Buffer() : Buffer(0) {}
  explicit Buffer(std::size_t bytes);

  void* data() { return storage_.data() + kGuard; }
  void clear();
  // The number at `component` of the element that starts `at` bytes from data().
  void store(std::ptrdiff_t at, const Component& component, int value);
  // Takes over from `other` what lies between the two places.
  void copy(const Buffer& other, std::ptrdiff_t from, std::ptrdiff_t to);
  // All bytes alike: numbers, holes and guard zones.
  bool operator==(const Buffer& other) const { return storage_ == other.storage_; }
  // Where the first difference lies, from data().
  std::ptrdiff_t difference(const Buffer& other) const;

 private:
  static constexpr std::ptrdiff_t kGuard = 128;  // bytes on either side
  std::vector<unsigned char> storage_;
};

}  // namespace conformance
