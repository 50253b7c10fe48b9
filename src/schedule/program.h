// Program: a schedule compiled to simple instructions. This is possible if the schedule needs only
// the process's own memory and the shared memory of its node. Without it, half of the processor
// time of a short collective would go into decoding steps. Source: Jocksch, Piccinali,
// shared-memory persistent allreduce (compiled when it is initialised).
#pragma once

#include <cstdint>
#include <vector>

namespace weft {

enum class Buffer : std::uint8_t;
struct Schedule;

// Instruction: one step of a compiled schedule. It fits into a cache line.
struct Instruction {
  enum class Kind : std::uint8_t {
    signal,  // sets this rank's counter to `value`
    wait,    // waits until the counter of the rank with `node_rank` is at least `value`
    copy,    // copies `amount` bytes from first to second
    // Computes into = first op second for `amount` elements. Stores the result to `also`, too, if
    // has_also is true.
    reduce,
    end,    // ends the schedule
    tell,   // sets the word at `first` in the node's shared memory to `value`
    check,  // checks that the word at `first` is `value`; otherwise the call fails
  };

  Kind kind;
  bool has_also = false;
  Buffer first{}, second{}, into{}, also{};
  std::uint32_t value = 0;
  std::int32_t node_rank = 0;
  // Index of the first step of the schedule that this instruction carries out. An `end` has the
  // number of all steps instead.
  std::uint32_t step = 0;
  // Byte offsets of the operands in the buffers `first`, `second`, `into` and `also`.
  std::int64_t first_at = 0, second_at = 0, into_at = 0, also_at = 0;
  std::int64_t amount = 0;
};
static_assert(sizeof(Instruction) == 64);

using Program = std::vector<Instruction>;

// Compiles a schedule. The result is empty if the schedule needs messages, the MPI library's
// datatypes or other ranks' buffers. If it contains reductions, it can only be run if Weft has a
// loop of its own (a kernel) for their operator and datatype.
Program compile(const Schedule& schedule);

}  // namespace weft
