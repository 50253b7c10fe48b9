// Program: the steps of a schedule that needs only this process's and the node's memory, compiled
// for those who replay them: otherwise half of a short collective's instructions would decode
// steps.
// Jocksch, Piccinali, shared-memory persistent allreduce (compiled when it is initialised)
#pragma once

#include <cstdint>
#include <vector>

namespace weft {

enum class Buffer : std::uint8_t;
struct Schedule;

// Each fits into a cache line.
struct Instruction {
  enum class Kind : std::uint8_t {
    signal,  // this rank's counter becomes `value`
    wait,    // until the counter of the rank with `node_rank` is at least `value`
    copy,    // `amount` bytes, first -> second
    reduce,  // `amount` elements, into = first op second; and `also`, if has_also
    end,     // of the program
  };

  Kind kind;
  bool has_also = false;
  Buffer first{}, second{}, into{}, also{};
  std::uint32_t value = 0;
  std::int32_t node_rank = 0;
  std::uint32_t step = 0;  // the first one that it carries out; of the end: how many there are
  std::int64_t first_at = 0, second_at = 0, into_at = 0, also_at = 0;  // offsets there
  std::int64_t amount = 0;
};
static_assert(sizeof(Instruction) == 64);

using Program = std::vector<Instruction>;

// Returns an empty program if the schedule needs messages, the MPI library's datatypes or other
// ranks' buffers. A program that reduces needs a kernel to be replayed.
Program compile(const Schedule& schedule);

}  // namespace weft
