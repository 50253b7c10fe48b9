// OneCopyRule: decides which collectives inside one node are copied by the kernel (shm/one_copy.h):
// those that move data without reducing them, above a measured size. The size is measured because
// the kernel pins every page that it copies, which costs from a fraction of the copy itself to
// several times as much, depending on processor and virtual machine.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/collective.h"

namespace weft {

struct OneCopyRule {
  // Value of a size in bytes of a block from which the kernel is to copy: it never does.
  static constexpr std::int64_t kNever = INT64_MAX;
  // Least bytes of a block for which the kernel copies if one rank's data go to the others, or
  // theirs to it. With two copies through shared memory, both then run on two cores at the same
  // time.
  std::int64_t least_of_one = kNever;
  // Least bytes of a block for which the kernel copies if each rank has data for the others. With
  // two copies through shared memory, each core then makes both.
  std::int64_t least_of_all = kNever;
  bool asked_for = false;  // true if the user asked for copies by the kernel, faster or not

  bool takes_any() const { return least_of_one < kNever || least_of_all < kNever; }
  // Returns whether the kernel copies the data of this call, whose size all ranks know; the answer
  // is equal on all of them. It does not in an in-place alltoall: there one of two ranks would
  // write into the other's memory, which Weft never does.
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

// The result of measuring copies by the kernel for one kind of traffic: one rank's data for the
// others, or data between all.
struct OneCopyFound {
  struct Time {
    // A size in bytes, and the least of a few measurements with it; each is one rank's time for
    // several consecutive calls.
    std::int64_t bytes = 0, one_copy_ns = 0, two_copies_ns = 0;

    // Returns whether one copy is faster than two by at least a tenth.
    bool wins() const { return one_copy_ns * 10 <= two_copies_ns * 9; }
  };
  std::vector<Time> times;  // times of the measured sizes; each size is half of the previous one
  bool is_whole = true;     // false if there was no time to measure further sizes

  // Returns the least bytes of a block for which the kernel should copy. It lies half way (by
  // ratio) between the shortest size that won and the next shorter one. Sizes below those measured
  // stay with two copies, since copying takes a smaller part of the time of shorter blocks.
  std::int64_t least_bytes() const {
    std::int64_t least = OneCopyRule::kNever;
    for (const Time& time : times)
      if (time.wins()) least = time.bytes * 181 / 256;
    return least;
  }
};

}  // namespace weft
