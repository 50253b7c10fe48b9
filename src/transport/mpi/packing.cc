// Packs and unpacks elements by MPI_Pack and MPI_Unpack, and works around arguments that some MPI
// libraries refuse.
#include "transport/mpi/packing.h"

#include <climits>

#include "library/generated/library_calls.h"

namespace weft {
namespace {

// Described: an address and a datatype for elements that the MPI library accepts. MPICH 4.0 takes
// MPI_BOTTOM for a missing buffer; the elements are then described by another address and a
// datatype with the opposite displacement.
class Described {
 public:
  explicit Described(const Elements& elements)
      : address_(elements.address), count_(static_cast<int>(elements.count)), type_(elements.type) {
    if (address_) return;
    address_ = this;
    const MPI_Aint back = -reinterpret_cast<MPI_Aint>(address_);
    library_calls.Type_create_hindexed(1, &count_, &back, elements.type, &type_);
    library_calls.Type_commit(&type_);
    count_ = 1;
    made_ = true;
  }
  ~Described() {
    if (made_) library_calls.Type_free(&type_);
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;

  void* address() const { return address_; }
  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

 private:
  void* address_;
  int count_;
  MPI_Datatype type_;
  bool made_ = false;
};

bool fits(const Elements& elements, std::int64_t bytes) {
  return bytes <= INT_MAX && elements.count <= INT_MAX;
}

}  // namespace

int pack_elements(const Elements& from, void* to, std::int64_t bytes, MPI_Comm comm) {
  if (!fits(from, bytes)) return MPI_ERR_COUNT;
  const Described described(from);
  int position = 0;
  return library_calls.Pack(described.address(), described.count(), described.type(), to,
                            static_cast<int>(bytes), &position, comm);
}

int unpack_elements(const void* from, std::int64_t bytes, const Elements& to, MPI_Comm comm) {
  if (!fits(to, bytes)) return MPI_ERR_COUNT;
  const Described described(to);
  int position = 0;
  return library_calls.Unpack(from, static_cast<int>(bytes), &position, described.address(),
                              described.count(), described.type(), comm);
}

}  // namespace weft
