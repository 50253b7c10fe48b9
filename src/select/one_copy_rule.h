// OneCopyRule: decides which collectives inside one node the kernel copies directly between
// processes (shm/one_copy.h): those that move data without reducing them, above a measured size.
// The size is measured because the kernel pins every page that it copies, which costs from a
// fraction of the copy itself to several times as much, depending on processor and virtual machine.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/collective.h"

namespace weft {

struct OneCopyRule {
  // Value of a least size for which the kernel never copies.
  static constexpr std::int64_t kNever = INT64_MAX;
  // Least bytes of a block from which the kernel copies if one rank's data go to the others, or
  // theirs to it. The two copies through shared memory, which it replaces, run at the same time on
  // two cores.
  std::int64_t least_of_one = kNever;
  // Least bytes of a block from which the kernel copies if each rank has data for the others. Each
  // core then makes both of the copies through shared memory that it replaces.
  std::int64_t least_of_all = kNever;
  // True if the user has asked for copies by the kernel, whether or not they are faster.
  bool asked_for = false;

  bool takes_any() const { return least_of_one < kNever || least_of_all < kNever; }
  // Returns whether the kernel copies the data of this call. All ranks know the size and get the
  // same answer. It does not copy in an in-place alltoall: there one of two ranks would write into
  // the other's memory, which Weft never does.
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

// OneCopyFound: the times of copies by the kernel and of copies through shared memory, for one kind
// of traffic: one rank's data for the others, or data between all.
struct OneCopyFound {
  struct Time {
    // bytes: a measured size. one_copy_ns, two_copies_ns: the least of a few measurements with
    // copies by the kernel and through shared memory; each is one rank's time for several
    // consecutive calls.
    std::int64_t bytes = 0, one_copy_ns = 0, two_copies_ns = 0;

    // Returns whether copies by the kernel are faster by at least a tenth.
    bool wins() const { return one_copy_ns * 10 <= two_copies_ns * 9; }
  };
  std::vector<Time> times;  // measured times; the size in each is half of that in the one before
  bool is_whole = true;     // false if there was no time to measure smaller sizes

  // Returns the least bytes of a block from which the kernel should copy. It lies half way (by
  // ratio) between the smallest size at which the kernel was faster and the next smaller one. Sizes
  // below those measured stay with shared memory, since copying takes a smaller part of the time of
  // shorter blocks.
  std::int64_t least_bytes() const {
    std::int64_t least = OneCopyRule::kNever;
    for (const Time& time : times)
      if (time.wins()) least = time.bytes * 181 / 256;
    return least;
  }
};

}  // namespace weft
