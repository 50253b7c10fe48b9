// Program: the steps of a schedule that needs only this process's and the node's memory, compiled
// to instructions. Otherwise half of the processor's work in a short collective would be the
// decoding of steps. Source: Jocksch, Piccinali, shared-memory persistent allreduce (compiled when
// it is initialised).
#pragma once

#include <cstdint>
#include <vector>

namespace weft {

enum class Buffer : std::uint8_t;
struct Schedule;

// A step of a program. It fits into a cache line.
struct Instruction {
  enum class Kind : std::uint8_t {
    signal,  // sets this rank's counter to `value`
    wait,    // waits until the counter of the rank with `node_rank` is at least `value`
    copy,    // copies `amount` bytes from first to second
    // Computes into = first op second for `amount` elements; stores it to `also`, too, if has_also.
    reduce,
    end,    // ends the program
    tell,   // sets the word `first` of the node's memory to `value`
    check,  // checks that this word is `value`; otherwise the call fails
  };

  Kind kind;
  bool has_also = false;
  Buffer first{}, second{}, into{}, also{};
  std::uint32_t value = 0;
  std::int32_t node_rank = 0;
  // Index of the first step that the instruction carries out; for `end`, the number of steps.
  std::uint32_t step = 0;
  std::int64_t first_at = 0, second_at = 0, into_at = 0, also_at = 0;  // offsets in their buffers
  std::int64_t amount = 0;
};
static_assert(sizeof(Instruction) == 64);

using Program = std::vector<Instruction>;

// Compiles a schedule. The program is empty if the schedule needs messages, the MPI library's
// datatypes or other ranks' buffers. A program with reductions can only be run with a kernel.
Program compile(const Schedule& schedule);

}  // namespace weft
