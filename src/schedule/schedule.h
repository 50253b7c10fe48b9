// Schedule: one rank's immutable list of rounds of steps for a collective call. An algorithm builds
// it, a cache keeps it, and any executor runs it (as in LibNBC: Hoefler, Lumsdaine, Rehm, SC07).
// The steps of a round start in order. Sends and receives are posted and complete at the end of the
// round; reductions and copies run immediately. So a local step must not access data of a send or
// receive of the same round. The ranks of a node also communicate through shared memory. Each rank
// has a slot there: a counter with a few bytes of payload. A signal increments the rank's counter
// and publishes its earlier stores. A wait blocks the following steps until another rank's counter
// has reached a value. Jocksch, Piccinali, shared-memory persistent allreduce (the barrier is
// integrated in the data's flow). If the users' buffers themselves are in shared memory, a schedule
// may be direct: each rank shows where its buffers are, finds those of the others, and accesses
// them in place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/collective.h"
#include "schedule/program.h"
#include "schedule/tuning.h"

namespace weft {

// The buffers of an operand, which is (buffer, offset) and never an address, since a schedule
// outlives the call for which it was built. node: the memory shared by the ranks of a node. half_a,
// half_b: two parts of that memory which swap from one use to the next (Halves).
enum class Buffer : std::uint8_t { send, recv, temp, node, half_a, half_b };
inline constexpr int kBuffers = 6;
const char* buffer_name(Buffer buffer);  // returns for instance "send"

inline bool is_in_node(Buffer buffer) {
  return buffer >= Buffer::node;
}

struct Location {
  Buffer buffer = Buffer::send;
  // Offset in bytes from the buffer's origin; it may be negative if the datatype's lower bound is.
  std::int64_t offset = 0;
  // The rank that owns the buffer, if that is not this rank; a step `find` must have found it
  // before. For another rank, Buffer::send means its input wherever that lies; the offset counts
  // from the owner's outgoing(shape, 0), which only the owner knows.
  std::int32_t rank = kOwn;

  static constexpr std::int32_t kOwn = -1;

  bool is_own() const { return rank == kOwn; }
  Location operator+(std::int64_t bytes) const { return {buffer, offset + bytes, rank}; }
  bool operator==(const Location&) const = default;
};

// Returns the layout of one element of `unit`; a byte is an element without gaps.
const Layout& layout_of(const Shape& shape, Unit unit);

struct Operand {
  Location at;
  std::int64_t count = 0;
  Unit unit = Unit::recv;

  bool operator==(const Operand&) const = default;
};

enum class StepKind : std::uint8_t {
  send,    // sends first to peer
  recv,    // receives first from peer
  reduce,  // computes into = first op second; first is the lower-ranked operand
  copy,    // copies first to second; packs or unpacks if one side's unit is byte
  signal,  // sets this rank's counter to `value` and publishes its earlier writes
  wait,    // waits until the counter of `peer`, on the same node, is at least `value`
  tell,    // sets the word `first` of the node's memory to `value`
  check,   // checks that `peer` has set this word to `value`; otherwise the call fails
  show,    // publishes where this rank's buffers are, or that others cannot access them
  find,    // reads what `peer` has published; the schedule ends if a buffer cannot be accessed
  // Checks that all ranks can access all published buffers; otherwise the schedule ends on all
  // ranks.
  agree,
  // Calls a collective of the MPI library between the ranks of equal node rank on all nodes.
  leaders,
  library_blocking,     // calls the MPI library's blocking collective for the whole operation
  library_nonblocking,  // calls the MPI library's non-blocking collective for the whole operation
};

inline bool is_library(StepKind kind) {
  return kind == StepKind::library_blocking || kind == StepKind::library_nonblocking;
}

inline bool is_node(StepKind kind) {
  switch (kind) {
    case StepKind::signal:
    case StepKind::wait:
    case StepKind::tell:
    case StepKind::check:
    case StepKind::show:
    case StepKind::find:
    case StepKind::agree:
      return true;
    default:
      return false;
  }
}

// Returns whether a step of this kind completes only at the end of its round.
inline bool is_posted(StepKind kind) {
  return kind == StepKind::send || kind == StepKind::recv || kind == StepKind::leaders;
}

inline bool is_local(StepKind kind) {
  return kind == StepKind::reduce || kind == StepKind::copy;
}

// Says that a reduction of plain data and the following copy of its result are carried out
// together, by one kernel: the reduction is with_next, the copy with_before.
enum class Fused : std::uint8_t { no, with_next, with_before };

struct Step {
  StepKind kind;
  int peer = -1;
  Operand first{};
  Operand second{};
  Location into{};  // result of a reduce, with as many elements as `second`, which it may overwrite
  std::uint32_t value = 0;  // counter value of a signal or wait, word of a tell or check
  // The collective of a step `leaders`, which sends `first` and receives `second`. An unused
  // operand is empty; in place, both are equal. peer: the root.
  Kind collective = Kind::barrier;
  bool plain = false;  // a local step between plain operands, which may be treated as bytes
  Fused fused = Fused::no;
  std::int64_t bytes = 0;  // payload of `first` in a local step
};

// Return the operand that a posted step reads, and the one that it writes by the end of its round.
Operand given_by(const Step& step);
Operand got_by(const Step& step);

// Returns the operand that a local step writes.
Operand result_of(const Step& step);

inline constexpr std::int64_t kLineBytes = 64;  // size of a cache line
inline constexpr std::int64_t kWordBytes = 4;   // size of the word that a step `tell` sets
// The node's memory begins with a slot per rank, one cache line each: the counter, an unused word
// (shm/node_buffers.h), and payload.
inline constexpr std::int64_t kSlotBytes = kLineBytes;
// Bits of the number of signals, at most 2^20 - 1 per schedule.
inline constexpr int kSignalBits = 20;
inline constexpr int kFingerprintBits = 12;  // bits of a fingerprint, which is never 0
inline constexpr std::int64_t kSpareOffset = 8;
inline constexpr std::int64_t kSlotHeaderBytes = 16;
inline constexpr std::int64_t kSlotPayloadBytes = kSlotBytes - kSlotHeaderBytes;
// Describes where one of a rank's buffers is, so that other processes can use it in place: in
// memory that processes share (SharedRanges), or in a process's own memory, of which others attach
// the pages that they need (ProcessMemory).
struct ShownBuffer {
  // Value of `memory` if no other rank uses the buffer.
  static constexpr std::int64_t kNotUsed = -1;
  static constexpr std::int64_t kNotShared = -2;
  // Value of `memory` for the own memory of the process of rank 0 in MPI_COMM_WORLD; rank 1 has -4,
  // and so on.
  static constexpr std::int64_t kOfProcess = -3;

  std::int64_t memory = kNotUsed;  // number of the shared range or process
  std::int64_t offset = 0;         // offset in the shared range; address in a process
  std::int32_t first_page = 0;     // first page to attach, relative to the page of `offset`
  std::uint32_t pages = 0;         // number of pages; 0 if all ranks of the call have them already

  bool is_of_process() const { return memory <= kOfProcess; }
  int process() const { return static_cast<int>(kOfProcess - memory); }
};
struct PublishedBuffers {
  ShownBuffer input, result;
};
// Offset in bytes of a rank's answer in the cache line in which it publishes its buffers. The
// answer says whether the rank can access the buffers that the others have published.
inline constexpr std::int64_t kAnswerOffset = kLineBytes - 8;
static_assert(sizeof(PublishedBuffers) <= kAnswerOffset);
// The most bytes of node memory per rank that a schedule may use in addition to the slots, which
// then take whole pages: two chunks of 256 KiB (select/selector.h).
inline constexpr std::int64_t kNodeBytesPerRank = 512 * 1024;
inline constexpr std::int64_t kPageBytes = 4096;
constexpr std::int64_t to_pages(std::int64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}
inline constexpr std::int64_t most_node_bytes(int ranks) {
  const std::int64_t slots = to_pages(ranks * kSlotBytes);
  return slots + ranks * kNodeBytesPerRank;
}

// Two parts of the node's memory in which two ranks exchange data. Each rank writes next time where
// it has read: a core gains ownership of a cache line more cheaply if it was the last to read it.
struct Halves {
  std::int64_t offset = 0;  // offset of the first half in the node's memory
  std::int64_t stride = 0;  // distance from the first to the second half; 0: none
  bool change = false;      // true if the halves swap for the next use
};

struct Schedule {
  Shape shape;
  const char* algorithm = "";  // name on the command line
  Tuning tuning;
  std::vector<Step> steps;                // all rounds, one after the other
  std::vector<std::uint32_t> round_ends;  // index past the last step of each round
  // The steps in compiled form; empty if the schedule needs more than memory (schedule/program.h).
  Program program;
  std::int64_t temp_bytes = 0;  // size of the temporary buffer, 64-byte aligned
  std::int64_t node_bytes = 0;  // bytes of node memory, including the slots; 0: none
  Halves halves;
  bool is_long = false;   // long data, which use fewer node buffers; equal on all ranks
  bool is_short = false;  // all of its data in node memory fit into the slots
  // A hash of facts that all ranks of a call share, by which they detect mismatched calls. It is 0
  // if the schedule uses no node memory.
  std::uint32_t fingerprint = 0;
  std::uint32_t most_posted = 0;   // most steps posted in one round
  std::uint32_t leader_calls = 0;  // number of collectives between leaders
  // True if a send follows a round that waits. If false, no other rank waits for this rank's later
  // progress in order to receive.
  bool sends_after_first_round = false;
  // True if a receive follows a round that waits; the sender of a long message then waits for this
  // rank's progress.
  bool receives_after_first_round = false;
  // True if no rank completes before all have entered, so that completion implies that the previous
  // call is over on all ranks.
  bool synchronizing = false;
  // is_direct: ranks use each other's buffers in place; all ranks first find all buffers, so that
  // all know whether the schedule can run. shows_input, shows_result: whether other ranks use this
  // rank's input, and its result.
  bool is_direct = false, shows_input = false, shows_result = false;
  // True if each rank signals only once, before its first wait, and sends nothing; equal on all
  // ranks. So no rank waits for another one after that one's first step of progress.
  bool exchanges_once = false;

  // The rounds that calling threads carry out. The call that starts the collective helps for a
  // while with the first rounds_at_start rounds. Rounds from left_from_round on are left to
  // callers, unless one of them blocks in another call.
  static constexpr std::uint32_t kNever = UINT32_MAX;
  std::uint32_t rounds_at_start = 0;
  std::uint32_t left_from_round = kNever;
  bool is_split() const { return rounds_at_start > 0 || left_from_round != kNever; }

  // Returns whether other ranks wait for later steps of this rank, or will wait in another
  // collective for the node buffer that this one uses.
  bool is_awaited() const {
    return sends_after_first_round || receives_after_first_round || node_bytes > 0;
  }

  // Returns whether the number of completed rounds does not show the progress, because the schedule
  // uses node memory or the MPI library's own rounds.
  bool hides_rounds() const {
    return node_bytes > 0 || is_direct || (steps.size() == 1 && is_library(steps.front().kind));
  }

  // Builds the schedule's next iterations while the collective is in progress
  // (Builder::iterations); nullptr if none are left.
  Schedule (*next_batch)(Schedule batch) = nullptr;
  std::int32_t iterations = 0;       // most iterations that are built at a time
  std::int32_t iterations_done = 0;  // number of iterations up to the end of this schedule

  std::uint32_t rounds() const { return static_cast<std::uint32_t>(round_ends.size()); }
};

// Return block `index` of this rank's input or output; the input of a call in place lies in the
// receive buffer. Collectives with a single block use it for every index. Reductions count in
// elements, and so does the block of a reduce_scatter. Neighborhood collectives use send_blocks and
// recv_blocks if these are given.
Operand outgoing(const Shape& shape, int index);
Operand incoming(const Shape& shape, int index);

// Returns a location in half_a or half_b as one in node memory, for uses in which half_a comes
// first; other locations are returned unchanged.
Location in_node(const Schedule& schedule, const Location& at);

// Returns the collective's data in a user's buffer of this rank, without empty blocks and with
// contiguous ones merged; nothing if MPI ignores the buffer.
std::vector<Operand> buffer_runs(const Shape& shape, Buffer buffer);

// Returns the number of bytes that an operand has as a message.
std::int64_t payload_bytes(const Shape& shape, const Operand& operand);

// A range of bytes, counted from the buffer's origin. touched_bytes() returns the range that an
// operand spans, including gaps.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
Range touched_bytes(const Shape& shape, const Operand& operand);

// Prints a header line and one line per step, for people and for golden files.
std::string print(const Schedule& schedule);

}  // namespace weft
