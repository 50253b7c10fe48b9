// Schedule: one rank's immutable list of rounds of steps for one collective call.
// Why: an algorithm builds it, a cache keeps it, any executor runs it (LibNBC's idea: Hoefler,
// Lumsdaine, Rehm, SC07). Steps of a round start in their order; sends and receives are posted
// and complete at the end of the round; reduce and copy are done when reached. So a local step
// must not touch what a send or receive of the same round touches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/collective.h"

namespace weft {

// Operands are (buffer, offset), never addresses: a schedule outlives the call it was built for.
enum class Buffer : std::uint8_t { send, recv, temp };

struct Location {
  Buffer buffer = Buffer::send;
  std::int64_t offset = 0;  // bytes from the buffer's origin; may be negative with negative lb

  Location operator+(std::int64_t bytes) const { return {buffer, offset + bytes}; }
  bool operator==(const Location&) const = default;
};

// The layout of one element of `unit`; a byte is one without holes.
const Layout& layout_of(const Shape& shape, Unit unit);

struct Operand {
  Location at;
  std::int64_t count = 0;
  Unit unit = Unit::recv;
};

enum class StepKind : std::uint8_t {
  send,                 // first -> peer
  recv,                 // peer -> first
  reduce,               // second = first op second (first is the lower-ranked operand)
  copy,                 // first -> second; packs or unpacks when one side's unit is byte
  library_blocking,     // the whole collective, by the MPI library, blocking
  library_nonblocking,  // the whole collective, by the MPI library, non-blocking
};

inline bool is_library(StepKind kind) {
  return kind == StepKind::library_blocking || kind == StepKind::library_nonblocking;
}

struct Step {
  StepKind kind;
  int peer = -1;
  Operand first;
  Operand second;
};

struct Schedule {
  Shape shape;
  const char* algorithm = "";             // name on the command line
  std::vector<Step> steps;                // all rounds, one after the other
  std::vector<std::uint32_t> round_ends;  // index past the last step of each round
  std::int64_t temp_bytes = 0;            // size of the temp buffer, 64-byte aligned
  std::uint32_t most_posted = 0;          // most sends + receives in one round
  // A send follows after a round that waits. False: no other rank waits for this rank's progress.
  bool sends_after_first_round = false;

  std::uint32_t rounds() const { return static_cast<std::uint32_t>(round_ends.size()); }
};

// Block `index` of what this rank gives (in place: in the receive buffer), and of what it gets.
// Collectives that give or get one thing only have it as their block for every index; reductions
// count in elements, and so does a reduce_scatter's block of the whole vector.
Operand outgoing(const Shape& shape, int index);
Operand incoming(const Shape& shape, int index);

// Elements that the collective has in a user's buffer on this rank; 0 where MPI ignores the buffer.
std::int64_t buffer_elements(const Shape& shape, Buffer buffer);

// Bytes from the buffer's origin that an operand touches, holes between them included.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
Range touched_bytes(const Shape& shape, const Operand& operand);

// For people and for golden files: a line of header, one line per step.
std::string print(const Schedule& schedule);

}  // namespace weft
