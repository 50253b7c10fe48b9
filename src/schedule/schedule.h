// Schedule: one rank's immutable list of rounds of steps for a collective call. An algorithm builds
// it, a cache keeps it, and any executor runs it (as in LibNBC: Hoefler, Lumsdaine, Rehm, SC07).
// The steps of a round start in order. Sends and receives are posted at once and complete at the
// end of the round; reductions and copies run immediately. So a reduction or copy must not access
// data of a send or receive of the same round.
// The ranks of a node also communicate through shared memory. Each rank has a slot there: a counter
// with a few bytes of payload. A signal raises the rank's counter and publishes its earlier stores.
// A wait blocks the following steps until another rank's counter has reached a value. (Jocksch,
// Piccinali, shared-memory persistent allreduce: the barrier is integrated in the data's flow.) If
// the users' buffers themselves can be accessed by other processes, a schedule may be direct: each
// rank publishes where its buffers are, finds those of the others, and accesses them in place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/collective.h"
#include "schedule/program.h"
#include "schedule/tuning.h"

namespace weft {

// Says in which buffer an operand lies. An operand is a buffer and an offset, never an address,
// since a schedule outlives the call for which it was built. node: the memory shared by the ranks
// of a node. half_a, half_b: two parts of that memory which swap from one operation to the next
// (see Halves).
enum class Buffer : std::uint8_t { send, recv, temp, node, half_a, half_b };
inline constexpr int kBuffers = 6;
const char* buffer_name(Buffer buffer);  // returns a name such as "send"

inline bool is_in_node(Buffer buffer) {
  return buffer >= Buffer::node;
}

struct Location {
  Buffer buffer = Buffer::send;
  // Bytes from the beginning of the buffer. They are negative if the lower bound of the datatype
  // is.
  std::int64_t offset = 0;
  // The rank that owns the buffer, or kOwn for this rank. Before another rank's buffer is used, a
  // step `find` must have found it. Another rank's Buffer::send means its input, even if that lies
  // in its receive buffer; the offset counts from the beginning of the input.
  std::int32_t rank = kOwn;

  static constexpr std::int32_t kOwn = -1;

  bool is_own() const { return rank == kOwn; }
  Location operator+(std::int64_t bytes) const { return {buffer, offset + bytes, rank}; }
  bool operator==(const Location&) const = default;
};

// Returns the layout of one element of `unit`; that of a byte has no gaps.
const Layout& layout_of(const Shape& shape, Unit unit);

struct Operand {
  Location at;
  std::int64_t count = 0;
  Unit unit = Unit::recv;

  bool operator==(const Operand&) const = default;
};

enum class StepKind : std::uint8_t {
  send,    // sends `first` to `peer`
  recv,    // receives `first` from `peer`
  reduce,  // computes into = first op second; `first` is the operand of the lower ranks
  copy,    // copies `first` to `second`; packs or unpacks if one of them has Unit::byte
  signal,  // sets this rank's counter to `value` and publishes its earlier writes
  wait,    // waits until the counter of `peer`, on the same node, is at least `value`
  tell,    // sets the word at `first` in the node's shared memory to `value`
  // Checks that the word at `first`, which `peer` writes, is `value`; otherwise the call fails.
  check,
  show,  // publishes where this rank's buffers are, or that others cannot access them
  find,  // reads where the buffers of `peer` are; the schedule ends if they cannot be accessed
  // Checks that all ranks can access all published buffers. Otherwise the schedule ends on all
  // ranks.
  agree,
  // Calls a collective of the MPI library between the ranks of equal node rank, one per node.
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

// Says that a reduction and the copy of its result, the next step, run in one pass over the data.
// The reduction has the value with_next, the copy with_before. Both have plain data (predefined and
// without gaps).
enum class Fused : std::uint8_t { no, with_next, with_before };

struct Step {
  StepKind kind;
  int peer = -1;
  Operand first{};
  Operand second{};
  // Result of a reduce step: as many elements as `second`, which the result may overwrite.
  Location into{};
  std::uint32_t value = 0;  // counter value of a signal or wait; word of a tell or check
  // This is the collective that a step of kind `leaders` calls among the ranks of equal node rank,
  // one per node. It sends `first`, receives into `second`, and has the root `peer`. An operand
  // that it does not use is empty. If the call is in place, both operands are equal.
  Kind collective = Kind::barrier;
  bool plain = false;  // true for a reduce or copy whose operands may be treated as bytes
  Fused fused = Fused::no;
  std::int64_t bytes = 0;  // bytes of data in `first`, for a reduce or copy
};

// given_by() returns the operand that a posted step (send, recv or leaders) reads. got_by() returns
// the operand that it has written by the end of its round.
Operand given_by(const Step& step);
Operand got_by(const Step& step);

// Returns the operand that a reduce or copy writes.
Operand result_of(const Step& step);

inline constexpr std::int64_t kLineBytes = 64;  // size of a cache line
inline constexpr std::int64_t kWordBytes = 4;   // size of the word that a step `tell` writes
// Bytes of a rank's slot, one cache line: the counter, a spare word (shm/node_buffers.h) and
// payload. The shared memory of a node begins with one slot per rank.
inline constexpr std::int64_t kSlotBytes = kLineBytes;
// Bits of a rank's counter that count its signals. A schedule has at most 2^20 - 1 signals.
inline constexpr int kSignalBits = 20;
// Bits of the hash by which ranks detect mismatched calls; it is never 0.
inline constexpr int kFingerprintBits = 12;
inline constexpr std::int64_t kSpareOffset = 8;
inline constexpr std::int64_t kSlotHeaderBytes = 16;
inline constexpr std::int64_t kSlotPayloadBytes = kSlotBytes - kSlotHeaderBytes;
// ShownBuffer: where one of a rank's buffers is, so that other processes can use it in place. The
// buffer lies in memory that processes share (SharedRanges), or in a process's own memory, of which
// others attach the pages that they need (ProcessMemory).
struct ShownBuffer {
  // Value of `memory` for a buffer that no other rank uses.
  static constexpr std::int64_t kNotUsed = -1;
  static constexpr std::int64_t kNotShared = -2;
  // Value of `memory` for the own memory of the process with rank 0 in MPI_COMM_WORLD. Rank 1 has
  // -4, rank 2 has -5, and so on.
  static constexpr std::int64_t kOfProcess = -3;

  // Number of the shared range, or kOfProcess minus the number of the process.
  std::int64_t memory = kNotUsed;
  // Bytes from the beginning of the shared range, or the address in the process.
  std::int64_t offset = 0;
  std::int32_t first_page = 0;  // first page to attach, counted from the page of `offset`
  // Number of pages to attach; 0 if all ranks of the call have them already.
  std::uint32_t pages = 0;

  bool is_of_process() const { return memory <= kOfProcess; }
  int process() const { return static_cast<int>(kOfProcess - memory); }
};
struct PublishedBuffers {
  ShownBuffer input, result;
};
// Offset of a rank's answer in the cache line in which it publishes its buffers, in bytes. The
// answer says whether the rank can access the buffers that the others have published.
inline constexpr std::int64_t kAnswerOffset = kLineBytes - 8;
static_assert(sizeof(PublishedBuffers) <= kAnswerOffset);
// The most bytes of the node's shared memory per rank that a schedule may use besides the slots,
// which take whole pages. It is room for two chunks of 256 KiB (select/selector.h).
inline constexpr std::int64_t kNodeBytesPerRank = 512 * 1024;
inline constexpr std::int64_t kPageBytes = 4096;
constexpr std::int64_t to_pages(std::int64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}
inline constexpr std::int64_t most_node_bytes(int ranks) {
  const std::int64_t slots = to_pages(ranks * kSlotBytes);
  return slots + ranks * kNodeBytesPerRank;
}

// Halves: two parts of the node's shared memory in which two ranks exchange data. In the next
// operation each rank writes where it has read, since a core gains ownership of a cache line more
// cheaply if it was the last to read it.
struct Halves {
  std::int64_t offset = 0;  // bytes from the beginning of the shared memory to the first half
  std::int64_t stride = 0;  // bytes from the first to the second half; 0 if there are no halves
  bool change = false;      // true if the halves swap for the next operation
};

struct Schedule {
  Shape shape;
  const char* algorithm = "";  // name of the algorithm, as in the option --algorithm
  Tuning tuning;
  std::vector<Step> steps;                // all rounds, one after the other
  std::vector<std::uint32_t> round_ends;  // index past the last step of each round
  // The steps in compiled form (schedule/program.h). It is empty if the schedule needs more than
  // the process's own memory and the shared memory of the node.
  Program program;
  std::int64_t temp_bytes = 0;  // bytes of the temporary buffer, which is 64-byte aligned
  // Bytes of the node's shared memory, including the slots; 0 if none is used.
  std::int64_t node_bytes = 0;
  Halves halves;
  // True for long data, which use only some of the node buffers; equal on all ranks.
  bool is_long = false;
  bool is_short = false;  // true if all data in shared memory fit into the slots
  // A hash of facts that all ranks of a call share, by which they detect mismatched calls. It is 0
  // if the schedule does not use the node's shared memory.
  std::uint32_t fingerprint = 0;
  std::uint32_t most_posted = 0;   // most sends, receives and calls of leaders in one round
  std::uint32_t leader_calls = 0;  // number of collectives of the MPI library between leaders
  // True if a send follows a round that waits for other ranks. If false, every message that others
  // receive from this rank is posted in its first round.
  bool sends_after_first_round = false;
  // True if a receive follows a round that waits for other ranks. The sender of a long message may
  // then wait for this rank's progress.
  bool receives_after_first_round = false;
  // True if no rank completes before all have entered the collective. Completion then implies that
  // the previous collective is over on all ranks.
  bool synchronizing = false;
  // is_direct: ranks use each other's buffers in place, after a check whether all of them can
  // access all buffers. shows_input, shows_result: other ranks use this rank's input, or its
  // result.
  bool is_direct = false, shows_input = false, shows_result = false;
  // True if each rank raises its counter once, before it first waits, and sends nothing; equal on
  // all ranks. No rank then waits for another after the other's first step of progress.
  bool exchanges_once = false;

  // Which rounds application threads carry out inside MPI calls. The call that starts the
  // collective helps for a while with the first rounds_at_start rounds. Rounds from left_from_round
  // on are left to the call that waits for the collective, unless the application blocks in another
  // MPI call first. kNever: no rounds are left.
  static constexpr std::uint32_t kNever = UINT32_MAX;
  std::uint32_t rounds_at_start = 0;
  std::uint32_t left_from_round = kNever;
  bool is_split() const { return rounds_at_start > 0 || left_from_round != kNever; }

  // Returns whether other ranks wait for later steps of this rank, or will wait in a later
  // collective for the shared memory that this one uses.
  bool is_awaited() const {
    return sends_after_first_round || receives_after_first_round || node_bytes > 0;
  }

  // Returns whether the number of completed rounds says nothing about the progress, because the
  // schedule uses other ranks' memory or the MPI library's own rounds.
  bool hides_rounds() const {
    return node_bytes > 0 || is_direct || (steps.size() == 1 && is_library(steps.front().kind));
  }

  // Builds the schedule of the next iterations while the collective is in progress
  // (Builder::iterations); nullptr if this schedule has the last ones.
  Schedule (*next_batch)(Schedule batch) = nullptr;
  std::int32_t iterations = 0;       // most iterations of one batch
  std::int32_t iterations_done = 0;  // number of iterations in this batch and all earlier ones

  std::uint32_t rounds() const { return static_cast<std::uint32_t>(round_ends.size()); }
};

// Return block `index` of this rank's input or output. If the call is in place, the input lies in
// the receive buffer. Collectives with a single block return it for every index. Reductions count
// in elements, and so does the block of a reduce_scatter. Neighborhood collectives use send_blocks
// and recv_blocks if these are given.
Operand outgoing(const Shape& shape, int index);
Operand incoming(const Shape& shape, int index);

// Returns a location in half_a or half_b as one in Buffer::node, for operations in which half_a is
// the first half. Other locations are returned unchanged.
Location in_node(const Schedule& schedule, const Location& at);

// Returns the data that the collective uses in a user's buffer of this rank, without empty blocks
// and with contiguous ones merged; nothing if MPI ignores the buffer.
std::vector<Operand> buffer_runs(const Shape& shape, Buffer buffer);

// Returns the number of bytes that an operand has when it is sent as a message.
std::int64_t payload_bytes(const Shape& shape, const Operand& operand);

// A range of bytes, counted from the beginning of a buffer. touched_bytes() returns the range that
// an operand spans, including gaps between its elements.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
Range touched_bytes(const Shape& shape, const Operand& operand);

// Prints a schedule: a header line, then one line per step. Tests compare it with stored output.
std::string print(const Schedule& schedule);

}  // namespace weft
