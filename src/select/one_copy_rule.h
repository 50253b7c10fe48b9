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
  // Sizes are bytes of a block.
  static constexpr std::int64_t kNever = INT64_MAX;
  // Applies if one rank's data go to the others, or theirs to it. With two copies, both then run on
  // two cores at the same time.
  std::int64_t least_of_one = kNever;
  // Applies if each rank has data for the others. With two copies, each core then makes both.
  std::int64_t least_of_all = kNever;
  bool asked_for = false;  // the user asked for it, whichever is faster

  bool takes_any() const { return least_of_one < kNever || least_of_all < kNever; }
  // Returns whether the kernel copies this call, whose size all ranks know; equal on all of them.
  // In an in-place alltoall one of two ranks would write into the other's memory, which Weft never
  // does.
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

// The result of measuring one kind of traffic.
struct OneCopyFound {
  struct Time {
    // The least of a few measurements; each is one rank's time for several consecutive calls.
    std::int64_t bytes = 0, one_copy_ns = 0, two_copies_ns = 0;

    // Returns whether one copy is faster by a tenth; otherwise nothing changes.
    bool wins() const { return one_copy_ns * 10 <= two_copies_ns * 9; }
  };
  std::vector<Time> times;  // the longest first, each half as long as the previous one
  bool is_whole = true;     // false if there was no time to measure further sizes

  // Returns the least size for one copy. The limit lies half way (by ratio) between the shortest
  // size that won and the next shorter one. Sizes below those measured stay with two copies, since
  // copying takes a smaller part of the time of shorter blocks.
  std::int64_t least_bytes() const {
    std::int64_t least = OneCopyRule::kNever;
    for (const Time& time : times)
      if (time.wins()) least = time.bytes * 181 / 256;
    return least;
  }
};

}  // namespace weft
