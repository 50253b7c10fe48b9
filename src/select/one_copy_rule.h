// OneCopyRule: which collectives of one node the kernel copies for (shm/one_copy.h): those that
// move data without reducing them, from so many bytes on.
// Why measured: the kernel takes hold of every page that it copies, which costs from a small part
// of the copy itself to several times as much, by processor and virtual machine.
#pragma once

#include <cstdint>
#include <vector>

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

// What a trial has found of one kind of traffic.
struct OneCopyFound {
  struct Time {
    // The least of a few; of one rank, of several calls in a row.
    std::int64_t bytes = 0, one_copy_ns = 0, two_copies_ns = 0;

    // By a tenth: what is as fast stays as it is.
    bool wins() const { return one_copy_ns * 10 <= two_copies_ns * 9; }
  };
  std::vector<Time> times;  // the longest first, each half as long as the one before
  bool is_whole = true;     // else there was no time for the next one

  // A size goes with the nearest one that was measured: down to half way (by their ratio) between
  // the shortest one that has won and the next. How it is below that, where there was no time to
  // measure, nobody knows, since the shorter a block, the more of its time is not the copy's.
  std::int64_t least_bytes() const {
    std::int64_t least = OneCopyRule::kNever;
    for (const Time& time : times)
      if (time.wins()) least = time.bytes * 181 / 256;
    return least;
  }
};

}  // namespace weft
