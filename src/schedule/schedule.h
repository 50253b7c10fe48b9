// Schedule: one rank's immutable list of rounds of steps for a collective call. An algorithm builds
// it, a cache keeps it, and any executor runs it (LibNBC's idea: Hoefler, Lumsdaine, Rehm, SC07).
// Steps of a round start in order; sends and receives are posted, and complete at the end of the
// round; reductions and copies are carried out when reached. So a local step must not touch data of
// a send or receive of the same round.
// Ranks of one node also communicate in shared memory: each has a slot there, a counter with a few
// bytes of payload. A rank publishes its stores by a signal (which increments its counter), and
// waits until another's counter has reached a value; a wait blocks the following steps. Jocksch,
// Piccinali, shared-memory persistent allreduce (the barrier is integrated in the data's flow).
// If the users' buffers themselves are in shared memory, a schedule may be direct: each rank shows
// where its buffers lie, finds those of the others, and reads and writes there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/collective.h"
#include "schedule/program.h"
#include "schedule/tuning.h"

namespace weft {

// Operands are (buffer, offset), never addresses: a schedule outlives the call for which it was
// built. node: the memory that the ranks of a node share. half_a, half_b: two parts of it that swap
// from one use of that memory to the next (Halves).
enum class Buffer : std::uint8_t { send, recv, temp, node, half_a, half_b };
inline constexpr int kBuffers = 6;
const char* buffer_name(Buffer buffer);  // "send"

inline bool is_in_node(Buffer buffer) {
  return buffer >= Buffer::node;
}

struct Location {
  Buffer buffer = Buffer::send;
  std::int64_t offset = 0;  // bytes from the buffer's origin; may be negative with negative lb
  // The owner of the buffer, which must have been found before. Another rank's `send` is its input
  // wherever that lies, beginning at its outgoing(shape, 0), which only that rank knows.
  std::int32_t rank = kOwn;

  static constexpr std::int32_t kOwn = -1;

  bool is_own() const { return rank == kOwn; }
  Location operator+(std::int64_t bytes) const { return {buffer, offset + bytes, rank}; }
  bool operator==(const Location&) const = default;
};

// Returns the layout of one element of `unit`; a byte is an element without holes.
const Layout& layout_of(const Shape& shape, Unit unit);

struct Operand {
  Location at;
  std::int64_t count = 0;
  Unit unit = Unit::recv;

  bool operator==(const Operand&) const = default;
};

enum class StepKind : std::uint8_t {
  send,     // first -> peer
  recv,     // peer -> first
  reduce,   // into = first op second (first is the lower-ranked operand)
  copy,     // first -> second; packs or unpacks when one side's unit is byte
  signal,   // this rank's counter becomes `value`; what it wrote before is visible
  wait,     // until the counter of `peer`, of the same node, is at least `value`
  show,     // this rank tells where its buffers lie, or that others cannot see them
  find,     // what `peer` has told; buffers that cannot be seen end the schedule
  agree,    // that all ranks reach all they have found, or it ends on all ranks alike
  leaders,  // a collective of the MPI library's between the ranks with one node rank on all nodes
  library_blocking,     // the whole collective, by the MPI library, blocking
  library_nonblocking,  // the whole collective, by the MPI library, non-blocking
};

inline bool is_library(StepKind kind) {
  return kind == StepKind::library_blocking || kind == StepKind::library_nonblocking;
}

inline bool is_node(StepKind kind) {
  return kind == StepKind::signal || kind == StepKind::wait || kind == StepKind::show ||
         kind == StepKind::find || kind == StepKind::agree;
}

// Returns whether the step completes only at the end of its round.
inline bool is_posted(StepKind kind) {
  return kind == StepKind::send || kind == StepKind::recv || kind == StepKind::leaders;
}

inline bool is_local(StepKind kind) {
  return kind == StepKind::reduce || kind == StepKind::copy;
}

// Marks a reduction of plain data and the copy of its result that follows: a kernel does both at
// once.
enum class Fused : std::uint8_t { no, with_next, with_before };

struct Step {
  StepKind kind;
  int peer = -1;
  Operand first{};
  Operand second{};
  Location into{};          // of a reduce: as many elements as second, which it may overwrite
  std::uint32_t value = 0;  // of a signal or wait
  // A step `leaders` sends `first` and receives `second`; either is empty if it is not used, and
  // they are equal if in place. peer: the root.
  Kind collective = Kind::barrier;
  bool plain = false;  // a local step between plain operands: it may be done on bytes
  Fused fused = Fused::no;
  std::int64_t bytes = 0;  // payload of `first`, of a local step
};

// Return the operand that a posted step reads, and the one that is written at the end of its round.
Operand given_by(const Step& step);
Operand got_by(const Step& step);

// Returns the operand that a local step writes.
Operand result_of(const Step& step);

inline constexpr std::int64_t kLineBytes = 64;  // a cache line
// The node's memory begins with a slot for each rank, a cache line: the counter, a word that nobody
// reads (shm/node_buffers.h), and payload.
inline constexpr std::int64_t kSlotBytes = kLineBytes;
inline constexpr int kSignalBits = 20;       // most signals of a rank in one schedule: 2^20 - 1
inline constexpr int kFingerprintBits = 12;  // never 0
inline constexpr std::int64_t kSpareOffset = 8;
inline constexpr std::int64_t kSlotHeaderBytes = 16;
inline constexpr std::int64_t kSlotPayloadBytes = kSlotBytes - kSlotHeaderBytes;
// Describes one of a rank's buffers in a step `show`: its place in memory that processes share
// (SharedRanges), or in a process's own memory, of which others attach the pages that they need
// (ProcessMemory).
struct ShownBuffer {
  static constexpr std::int64_t kNotUsed = -1;  // by no other rank: it may lie anywhere
  static constexpr std::int64_t kNotShared = -2;
  static constexpr std::int64_t kOfProcess = -3;  // of rank 0 in MPI_COMM_WORLD; of rank 1: -4, …

  std::int64_t memory = kNotUsed;  // its number
  std::int64_t offset = 0;         // there; of a process: the address
  std::int32_t first_page = 0;     // the pages to attach, counted from that of offset
  std::uint32_t pages = 0;         // 0: all ranks of the call have them already

  bool is_of_process() const { return memory <= kOfProcess; }
  int process() const { return static_cast<int>(kOfProcess - memory); }
};
struct ShownBuffers {
  ShownBuffer input, result;
};
// Behind its shown buffers, in the same cache line, a rank answers whether it reaches the others'
// shown buffers.
inline constexpr std::int64_t kAnswerOffset = kLineBytes - 8;
static_assert(sizeof(ShownBuffers) <= kAnswerOffset);
// The most node memory per rank that a schedule may use besides the slots, which then take whole
// pages: two chunks of 256 KiB (select/selector.h).
inline constexpr std::int64_t kNodeBytesPerRank = 512 * 1024;
inline constexpr std::int64_t kPageBytes = 4096;
constexpr std::int64_t to_pages(std::int64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}
inline constexpr std::int64_t most_node_bytes(int ranks) {
  const std::int64_t slots = to_pages(ranks * kSlotBytes);
  return slots + ranks * kNodeBytesPerRank;
}

// In an exchange between two ranks each writes next time where it has read: a core gains ownership
// of cache lines that it has read last more cheaply than of those that another core has read since.
struct Halves {
  std::int64_t offset = 0;  // of the first one, in the node's memory
  std::int64_t stride = 0;  // from there to the second; 0: none
  bool change = false;      // in the next use
};

struct Schedule {
  Shape shape;
  const char* algorithm = "";  // name on the command line
  Tuning tuning;
  std::vector<Step> steps;                // all rounds, one after the other
  std::vector<std::uint32_t> round_ends;  // index past the last step of each round
  Program program;                        // of one that may stand alone (engine/alone.h)
  std::int64_t temp_bytes = 0;            // size of the temp buffer, 64-byte aligned
  std::int64_t node_bytes = 0;            // of the node's memory, slots included; 0: none
  Halves halves;
  bool is_long = false;   // known to all ranks alike
  bool is_short = false;  // all that it has in the node's memory is in the slots
  // A hash of facts that all ranks of a call share, by which they notice a mismatch; for schedules
  // with node_bytes.
  std::uint32_t fingerprint = 0;
  std::uint32_t most_posted = 0;   // in one round
  std::uint32_t leader_calls = 0;  // collectives between leaders
  // Set if a send follows a round that waits. If not, no other rank waits for this rank's data.
  bool sends_after_first_round = false;
  // Set if a receive follows a round that waits: the sender of a long message waits for it.
  bool receives_after_first_round = false;
  // No rank ends before all have begun, so that the end implies that the previous call is over on
  // all ranks.
  bool synchronizing = false;
  // Describe a direct schedule, which all ranks begin by finding all buffers, so that all know
  // whether it can be carried out; and which buffers of this rank the others use.
  bool is_direct = false, shows_input = false, shows_result = false;
  // Set on all ranks alike: each signals once, before it first waits, and sends nothing. So nobody
  // waits for a rank after its first advance.
  bool exchanges_once = false;

  // The caller's part: the call that starts the collective helps with the first rounds for a while,
  // and rounds from left_from_round on are left to callers, unless one of them blocks elsewhere.
  static constexpr std::uint32_t kNever = UINT32_MAX;
  std::uint32_t rounds_at_start = 0;
  std::uint32_t left_from_round = kNever;
  bool is_split() const { return rounds_at_start > 0 || left_from_round != kNever; }

  // Returns whether others wait for later steps of this rank, or will wait in another collective
  // for the node buffer that this one uses.
  bool is_awaited() const {
    return sends_after_first_round || receives_after_first_round || node_bytes > 0;
  }

  // Returns whether progress inside a round cannot be seen: parts in the node's memory, or the MPI
  // library's own rounds.
  bool hides_rounds() const {
    return node_bytes > 0 || is_direct || (steps.size() == 1 && is_library(steps.front().kind));
  }

  // Builds the batch that follows this one while the collective is in progress
  // (Builder::iterations); nullptr if there is none.
  Schedule (*next_batch)(Schedule batch) = nullptr;
  std::int32_t iterations = 0;       // so many a batch
  std::int32_t iterations_done = 0;  // up to the end of this one

  std::uint32_t rounds() const { return static_cast<std::uint32_t>(round_ends.size()); }
};

// Return block `index` of this rank's input (in place: in the receive buffer) and of its output.
// Collectives with a single block use it for every index. Reductions count in elements, and so does
// the block of a reduce_scatter. Neighbourhoods take their blocks from send_blocks and recv_blocks
// where these are given.
Operand outgoing(const Shape& shape, int index);
Operand incoming(const Shape& shape, int index);

// Resolves half_a and half_b to node memory, for uses in which half_a comes first; other places are
// returned unchanged.
Location in_node(const Schedule& schedule, const Location& at);

// Returns the data of the collective in a user's buffer on this rank, without empty blocks and with
// contiguous ones merged; nothing if MPI ignores the buffer.
std::vector<Operand> buffer_runs(const Shape& shape, Buffer buffer);

// Returns the bytes of an operand in a message.
std::int64_t payload_bytes(const Shape& shape, const Operand& operand);

// A range of bytes, relative to the buffer's origin, that an operand touches, including holes.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
Range touched_bytes(const Shape& shape, const Operand& operand);

// Prints a header line and one line per step, for people and for golden files.
std::string print(const Schedule& schedule);

}  // namespace weft
