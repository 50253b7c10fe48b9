// OneCopyRule: which collectives of one node the kernel copies for (shm/one_copy.h): those that
// move data without reducing them, from so many bytes on.
// Why measured: the kernel takes hold of every page that it copies, which costs from a small part
// of the copy itself to several times as much, by processor and virtual machine.
#pragma once

#include <cstdint>

#include "schedule/collective.h"

namespace weft {

struct OneCopyRule {
  // Bytes of a block.
  static constexpr std::int64_t kNever = INT64_MAX;
  // Of one rank for the others, or of them for it: two copies are made on two cores at a time.
  std::int64_t least_of_one = kNever;
  // Of each rank for the others: each core makes them both.
  std::int64_t least_of_all = kNever;
  bool asked_for = false;  // by the user, whatever is faster

  bool takes_any() const { return least_of_one < kNever || least_of_all < kNever; }
  // Of a call that all ranks know alike; the same on all of them. In an alltoall in place one of
  // two ranks writes into the other's memory, which the kernel is not asked to do.
  bool takes(const Shape& shape) const {
    const std::int64_t bytes = agreed_bytes(shape).value_or(0);
    const std::int64_t block = shape.kind == Kind::bcast ? bytes : bytes / shape.size;
    switch (shape.kind) {
      case Kind::bcast:
      case Kind::gather:
      case Kind::scatter:
        return block >= least_of_one;
      case Kind::allgather:
      case Kind::allgatherv:
        return block >= least_of_all;
      case Kind::alltoall:
        return !shape.in_place && block >= least_of_all;
      default:
        return false;
    }
  }
};

}  // namespace weft
