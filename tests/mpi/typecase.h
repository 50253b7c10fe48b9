// TypeCase: a datatype with the places of its numbers, and guarded buffers of it.
// Why: holes, lower bounds and the bytes around a buffer must stay as they were; that can only be
// checked by someone who knows where the numbers lie.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

namespace conformance {

inline constexpr int kTypes = 6;
inline constexpr int kModulus = 127;
inline constexpr int kValues = kModulus * kModulus;  // numbers lie in [0, kValues)

struct Component {
  std::ptrdiff_t offset;
  bool is_double;  // else int
};

struct TypeCase {
  std::string name;
  MPI_Datatype type;
  std::ptrdiff_t extent;
  std::vector<Component> components;
  bool predefined;
  // Sums with wrap-around, and composes affine maps (associative, not commutative).
  MPI_Op user_sum, user_compose;
};

class TypeCases {
 public:
  TypeCases();
  ~TypeCases();
  TypeCases(const TypeCases&) = delete;
  TypeCases& operator=(const TypeCases&) = delete;
  const std::vector<TypeCase>& all() const { return cases_; }
  const TypeCase& named(const std::string& name) const;

 private:
  std::vector<TypeCase> cases_;
};

// `elements` elements between guard zones; every byte that is no number has a known pattern.
class Buffer {
 public:
  Buffer(const TypeCase& type, long elements);

  void* data() { return storage_.data() + origin_; }
  // Numbers that depend on who holds them, the place and the salt.
  void fill(int rank, int salt) { fill_part(0, elements_, rank, 0, salt); }
  // Elements at..at+count get the numbers that `rank` holds at from..from+count.
  void fill_part(long at, long count, int rank, long from, int salt);
  // All bytes alike: numbers, holes and guard zones.
  bool operator==(const Buffer& other) const { return storage_ == other.storage_; }

 private:
  void store(std::size_t at, const Component& component, int value);

  const TypeCase* type_;
  long elements_;
  std::size_t origin_;
  std::vector<unsigned char> storage_;
};

}  // namespace conformance
