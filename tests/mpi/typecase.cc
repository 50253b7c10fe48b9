// The table of datatypes, their operators, and the guarded buffers.
#include "typecase.h"

#include <algorithm>
#include <cstring>

namespace conformance {
namespace {

constexpr unsigned char kPattern = 0xA5;

// Returns the components of each type, by its index in the table. The user-defined operators use
// them.
const std::vector<Component>& components_of(int index) {
  constexpr Number integer = Number::integer, real = Number::real;
  static const std::vector<Component> table[kTypes] = {
      {{0, integer}},                            // int
      {{0, real}},                               // double
      {{0, real}, {8, real}},                    // complex
      {{0, integer}, {8, real}, {16, integer}},  // struct with holes
      {{0, integer}, {12, integer}},             // vector
      {{-16, real}, {8, integer}},               // negative lower bound
      {{0, Number::byte}},                       // byte
  };
  return table[index];
}

constexpr std::ptrdiff_t kExtents[kTypes] = {4, 8, 16, 32, 16, 32, 1};

template <class T>
int load_as(const unsigned char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<int>(value);
}

template <class T>
void put_as(unsigned char* at, int value) {
  const T number = static_cast<T>(value);
  std::memcpy(at, &number, sizeof number);
}

int load(const unsigned char* at, Number number) {
  if (number == Number::integer) return load_as<int>(at);
  if (number == Number::real) return load_as<double>(at);
  return *at;
}

void put(unsigned char* at, Number number, int value) {
  if (number == Number::integer) put_as<int>(at, value);
  if (number == Number::real) put_as<double>(at, value);
  if (number == Number::byte) *at = static_cast<unsigned char>(value);
}

int plus(int left, int right) {
  return left + right;
}

int maximum(int left, int right) {
  return std::max(left, right);
}

int minimum(int left, int right) {
  return std::min(left, right);
}

int exclusive_or(int left, int right) {
  return left ^ right;
}

template <int modulus>
int wrapped_sum(int left, int right) {
  return (left + right) % (modulus * modulus);
}

// Composes affine maps x -> a x + b modulo a prime. A map is stored as the number a * modulus + b.
template <int modulus>
int compose(int left, int right) {
  const int a = left / modulus, b = left % modulus;
  const int c = right / modulus, d = right % modulus;
  return (a * c % modulus) * modulus + (a * d + b) % modulus;
}

template <int index, int (*combine)(int, int)>
void user_function(void* in, void* inout, int* length, MPI_Datatype*) {
  auto* left = static_cast<unsigned char*>(in);
  auto* right = static_cast<unsigned char*>(inout);
  for (int i = 0; i < *length; ++i, left += kExtents[index], right += kExtents[index]) {
    for (const auto& [offset, number] : components_of(index)) {
      put(right + offset, number,
          combine(load(left + offset, number), load(right + offset, number)));
    }
  }
}

template <int index, int (*combine)(int, int)>
Operator user_operator(const char* name, bool commutes) {
  Operator result{name, MPI_OP_NULL, combine, user_function<index, combine>, commutes};
  MPI_Op_create(result.function, commutes, &result.op);
  return result;
}

template <int index, int modulus = kModulus>
TypeCase make(const char* name, MPI_Datatype type, bool predefined) {
  return {name,
          type,
          kExtents[index],
          components_of(index),
          predefined,
          {user_operator<index, compose<modulus>>("compose", false),
           user_operator<index, wrapped_sum<modulus>>("user sum", true)}};
}

MPI_Datatype resized(int blocks, MPI_Aint* places, MPI_Datatype* types, MPI_Aint lb,
                     MPI_Aint extent) {
  int lengths[] = {1, 1, 1};
  MPI_Datatype bare, whole;
  MPI_Type_create_struct(blocks, lengths, places, types, &bare);
  MPI_Type_create_resized(bare, lb, extent, &whole);
  MPI_Type_free(&bare);
  MPI_Type_commit(&whole);
  return whole;
}

}  // namespace

// The standard defines its predefined operators only on its own types, and no order of complex
// numbers.
TypeCases::TypeCases() {
  MPI_Aint holes_at[] = {0, 8, 16}, negative_at[] = {-16, 8};
  MPI_Datatype holes_of[] = {MPI_INT, MPI_DOUBLE, MPI_INT}, negative_of[] = {MPI_DOUBLE, MPI_INT};
  MPI_Datatype vector;
  MPI_Type_vector(2, 1, 3, MPI_INT, &vector);
  MPI_Type_commit(&vector);
  const Operator sum{"sum", MPI_SUM, plus, nullptr, true};
  const Operator max{"max", MPI_MAX, maximum, nullptr, true};
  const Operator min{"min", MPI_MIN, minimum, nullptr, true};
  const Operator bxor{"bxor", MPI_BXOR, exclusive_or, nullptr, true};
  cases_.push_back(make<0>("int", MPI_INT, true));
  cases_.push_back(make<1>("double", MPI_DOUBLE, true));
  cases_.push_back(make<2>("complex", MPI_C_DOUBLE_COMPLEX, true));
  cases_.push_back(make<3>("struct", resized(3, holes_at, holes_of, 0, kExtents[3]), false));
  cases_.push_back(make<4>("vector", vector, false));
  cases_.push_back(
      make<5>("negative", resized(2, negative_at, negative_of, -16, kExtents[5]), false));
  cases_.push_back(make<6, kByteModulus>("byte", MPI_UNSIGNED_CHAR, true));
  const std::vector<Operator> own[kTypes] = {
      {sum, max, min, bxor}, {sum, max, min}, {sum}, {}, {}, {}, {max, bxor}};
  for (int i = 0; i < kTypes; ++i) {
    auto& all = cases_[i].operators;
    all.insert(all.end(), own[i].begin(), own[i].end());
  }
}

TypeCases::~TypeCases() {
  for (auto& type : cases_) {
    for (auto& op : type.operators) {
      if (op.function) MPI_Op_free(&op.op);
    }
    if (!type.predefined) MPI_Type_free(&type.type);
  }
}

Buffer::Buffer(std::size_t bytes) : storage_(2 * kGuard + bytes, kPattern) {}

void Buffer::clear() {
  std::fill(storage_.begin(), storage_.end(), kPattern);
}

void Buffer::store(std::ptrdiff_t at, const Component& component, int value) {
  put(&storage_[kGuard + at + component.offset], component.number, value);
}

void Buffer::copy(const Buffer& other, std::ptrdiff_t from, std::ptrdiff_t to) {
  if (to > from) std::memcpy(&storage_[kGuard + from], &other.storage_[kGuard + from], to - from);
}

std::ptrdiff_t Buffer::difference(const Buffer& other) const {
  const auto at = std::mismatch(storage_.begin(), storage_.end(), other.storage_.begin()).first;
  return at - storage_.begin() - kGuard;
}

}  // namespace conformance
