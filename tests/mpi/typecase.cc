// TypeCase: see typecase.h.
#include "typecase.h"

#include <cstdlib>
#include <cstring>

namespace conformance {
namespace {

constexpr std::size_t kGuard = 128;  // bytes on either side
constexpr unsigned char kPattern = 0xA5;

// What the user-defined operators must know of each type, by its place in the table.
const std::vector<Component>& components_of(int index) {
  static const std::vector<Component> table[kTypes] = {
      {{0, false}},                          // int
      {{0, true}},                           // double
      {{0, true}, {8, true}},                // complex
      {{0, false}, {8, true}, {16, false}},  // struct with holes
      {{0, false}, {12, false}},             // vector
      {{-16, true}, {8, false}},             // negative lower bound
  };
  return table[index];
}

constexpr std::ptrdiff_t kExtents[kTypes] = {4, 8, 16, 32, 16, 32};

int load(const unsigned char* at, bool is_double) {
  if (!is_double) {
    int value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  double value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<int>(value);
}

void put(unsigned char* at, bool is_double, int value) {
  const double real = value;
  if (is_double) std::memcpy(at, &real, sizeof real);
  if (!is_double) std::memcpy(at, &value, sizeof value);
}

int sum(int left, int right) {
  return (left + right) % kValues;
}

// Numbers as affine maps x -> a x + b modulo a prime, written a * kModulus + b.
int compose(int left, int right) {
  const int a = left / kModulus, b = left % kModulus;
  const int c = right / kModulus, d = right % kModulus;
  return (a * c % kModulus) * kModulus + (a * d + b) % kModulus;
}

template <int index, int (*combine)(int, int)>
void user_function(void* in, void* inout, int* length, MPI_Datatype*) {
  auto* left = static_cast<unsigned char*>(in);
  auto* right = static_cast<unsigned char*>(inout);
  for (int i = 0; i < *length; ++i, left += kExtents[index], right += kExtents[index]) {
    for (const auto& [offset, is_double] : components_of(index)) {
      const int value = combine(load(left + offset, is_double), load(right + offset, is_double));
      put(right + offset, is_double, value);
    }
  }
}

template <int index>
TypeCase make(const char* name, MPI_Datatype type, bool predefined) {
  TypeCase result{name,       type,        kExtents[index], components_of(index),
                  predefined, MPI_OP_NULL, MPI_OP_NULL};
  MPI_Op_create(user_function<index, sum>, 1, &result.user_sum);
  MPI_Op_create(user_function<index, compose>, 0, &result.user_compose);
  return result;
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

TypeCases::TypeCases() {
  MPI_Aint holes_at[] = {0, 8, 16}, negative_at[] = {-16, 8};
  MPI_Datatype holes_of[] = {MPI_INT, MPI_DOUBLE, MPI_INT}, negative_of[] = {MPI_DOUBLE, MPI_INT};
  MPI_Datatype vector;
  MPI_Type_vector(2, 1, 3, MPI_INT, &vector);
  MPI_Type_commit(&vector);
  cases_.push_back(make<0>("int", MPI_INT, true));
  cases_.push_back(make<1>("double", MPI_DOUBLE, true));
  cases_.push_back(make<2>("complex", MPI_C_DOUBLE_COMPLEX, true));
  cases_.push_back(make<3>("struct", resized(3, holes_at, holes_of, 0, kExtents[3]), false));
  cases_.push_back(make<4>("vector", vector, false));
  cases_.push_back(
      make<5>("negative", resized(2, negative_at, negative_of, -16, kExtents[5]), false));
}

TypeCases::~TypeCases() {
  for (auto& type : cases_) {
    MPI_Op_free(&type.user_sum);
    MPI_Op_free(&type.user_compose);
    if (!type.predefined) MPI_Type_free(&type.type);
  }
}

const TypeCase& TypeCases::named(const std::string& name) const {
  for (const auto& type : cases_) {
    if (type.name == name) return type;
  }
  std::abort();
}

Buffer::Buffer(const TypeCase& type, long elements)
    : type_(&type),
      elements_(elements),
      origin_(kGuard),
      storage_(2 * kGuard + static_cast<std::size_t>(elements * type.extent), kPattern) {}

void Buffer::store(std::size_t at, const Component& component, int value) {
  put(&storage_[at], component.is_double, value);
}

void Buffer::fill_part(long at, long count, int rank, long from, int salt) {
  for (long i = 0; i < count; ++i) {
    int place = 0;
    for (const auto& component : type_->components) {
      const long value = 1L + rank * 3001L + (from + i) * 7 + place++ * 13 + salt * 101L;
      store(origin_ + (at + i) * type_->extent + component.offset, component,
            static_cast<int>(value % kValues));
    }
  }
}

}  // namespace conformance
