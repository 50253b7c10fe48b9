// Schedule: one rank's immutable list of rounds of steps for one collective call.
// Why: an algorithm builds it, a cache keeps it, any executor runs it (LibNBC's idea: Hoefler,
// Lumsdaine, Rehm, SC07). Steps of a round start in their order; sends and receives are posted
// and complete at the end of the round; reduce and copy are done when reached. So a local step
// must not touch what a send or receive of the same round touches.
// Ranks of one node also meet in memory that they share: each has a line there, a counter with a
// few bytes beside it. A rank publishes what it wrote by a signal (its counter goes up by one), and
// waits for another's counter to reach a value; a wait holds up the steps after it. Jocksch,
// Piccinali, shared-memory persistent allreduce (the barrier is integrated in the data's flow).
// Where the users' buffers are themselves in memory that ranks share, a schedule may be direct:
// each rank shows where its buffers lie, finds those of others, and reads and writes there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/collective.h"
#include "schedule/program.h"
#include "schedule/tuning.h"

namespace weft {

// Operands are (buffer, offset), never addresses: a schedule outlives the call it was built for.
// node: the memory that the ranks of a node share, one on each node. half_a, half_b: two halves of
// a part of it, which change places from one use of that memory to the next (Halves).
enum class Buffer : std::uint8_t { send, recv, temp, node, half_a, half_b };
inline constexpr int kBuffers = 6;
const char* buffer_name(Buffer buffer);  // "send"

inline bool is_in_node(Buffer buffer) {
  return buffer >= Buffer::node;
}

struct Location {
  Buffer buffer = Buffer::send;
  std::int64_t offset = 0;  // bytes from the buffer's origin; may be negative with negative lb
  // Whose it is, found before. Of another rank, `send` is its input wherever that lies, which only
  // the rank itself knows: from its outgoing(shape, 0) on.
  std::int32_t rank = kOwn;

  static constexpr std::int32_t kOwn = -1;

  bool is_own() const { return rank == kOwn; }
  Location operator+(std::int64_t bytes) const { return {buffer, offset + bytes, rank}; }
  bool operator==(const Location&) const = default;
};

// The layout of one element of `unit`; a byte is one without holes.
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
  leaders,  // a collective of the MPI library's between the ranks at one place of all nodes
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

// It is complete when its round ends, not before.
inline bool is_posted(StepKind kind) {
  return kind == StepKind::send || kind == StepKind::recv || kind == StepKind::leaders;
}

inline bool is_local(StepKind kind) {
  return kind == StepKind::reduce || kind == StepKind::copy;
}

// A reduction and the copy of its result that follows, of plain data: whoever has a kernel for it
// does both at once.
enum class Fused : std::uint8_t { no, with_next, with_before };

struct Step {
  StepKind kind;
  int peer = -1;
  Operand first{};
  Operand second{};
  Location into{};          // of a reduce: as many elements as second, whose place it may be
  std::uint32_t value = 0;  // of a signal or wait
  // Of leaders: first is what this rank gives, second what it gets, nothing where it does not; at
  // one place if both are. peer: the root.
  Kind collective = Kind::barrier;
  bool plain = false;  // a local step between plain operands: it may be done on bytes
  Fused fused = Fused::no;
  std::int64_t bytes = 0;  // payload of `first`, of a local step
};

// What a posted step reads, and what it has written when its round ends.
Operand given_by(const Step& step);
Operand got_by(const Step& step);

// What a local step writes.
Operand result_of(const Step& step);

// The lines at the beginning of the node's memory, one for each of its ranks: the counter, a word
// that nobody reads (shm/node_windows.h), then payload that travels in the same cache line.
inline constexpr std::int64_t kLineBytes = 64;
inline constexpr int kSignalBits = 20;       // most signals of a rank in one schedule: 2^20 - 1
inline constexpr int kFingerprintBits = 12;  // never 0
inline constexpr std::int64_t kSpareOffset = 8;
inline constexpr std::int64_t kLineHeaderBytes = 16;
inline constexpr std::int64_t kLinePayloadBytes = kLineBytes - kLineHeaderBytes;
// What a step `show` tells of one of its rank's buffers: where it lies in memory that processes
// share (SharedRanges), or in a process's own, of which others attach the pages that they need
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
// Behind that, in the same line, a rank answers whether it reaches what the others show.
inline constexpr std::int64_t kAnswerOffset = kLineBytes - 8;
static_assert(sizeof(ShownBuffers) <= kAnswerOffset);
// What a schedule may use of the node's memory beside the lines, which then take whole pages: two
// places of 256 KiB (select/selector.h).
inline constexpr std::int64_t kNodeBytesPerRank = 512 * 1024;
inline constexpr std::int64_t kPageBytes = 4096;
constexpr std::int64_t to_pages(std::int64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}
inline constexpr std::int64_t most_node_bytes(int ranks) {
  const std::int64_t lines = to_pages(ranks * kLineBytes);
  return lines + ranks * kNodeBytesPerRank;
}

// Where two ranks show each other what they have, each writes next time where it has read: a core
// owns the cache lines that it has read last more cheaply than those that another has read since.
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
  std::int64_t node_bytes = 0;            // of the node's memory, lines included; 0: none
  Halves halves;
  bool is_long = false;   // known to all ranks alike
  bool is_short = false;  // all that it has in the node's memory is in the lines
  // Of what all ranks of a call have in common, so that they notice if they do not; with
  // node_bytes.
  std::uint32_t fingerprint = 0;
  std::uint32_t most_posted = 0;   // in one round
  std::uint32_t leader_calls = 0;  // collectives between leaders
  // A send follows after a round that waits. False: no other rank waits for this rank's data.
  bool sends_after_first_round = false;
  // The same of a receive: the sender of a long message waits until it is posted.
  bool receives_after_first_round = false;
  // No rank ends before all have begun, so that the end tells that the last call is over
  // everywhere.
  bool synchronizing = false;
  // Of a direct schedule, which all ranks begin by finding all, so that they come to know alike
  // whether it can be carried out; and what of this rank's others use.
  bool is_direct = false, shows_input = false, shows_result = false;
  // On all ranks alike: each signals once, before it first waits, and sends nothing. So nobody
  // waits for what a rank does after its first advance.
  bool exchanges_once = false;

  // The caller's part: the call that starts the collective helps with the first rounds for a while,
  // and what comes from a round on is left to callers, unless one of them blocks elsewhere.
  static constexpr std::uint32_t kNever = UINT32_MAX;
  std::uint32_t rounds_at_start = 0;
  std::uint32_t left_from_round = kNever;
  bool is_split() const { return rounds_at_start > 0 || left_from_round != kNever; }

  // Others wait for this rank's later steps, if only with another collective, for the window that
  // this one uses in the node's memory.
  bool is_awaited() const {
    return sends_after_first_round || receives_after_first_round || node_bytes > 0;
  }

  // What goes on inside one of its rounds says nothing outside: parts in the node's memory, or the
  // MPI library's own rounds.
  bool hides_rounds() const {
    return node_bytes > 0 || is_direct || (steps.size() == 1 && is_library(steps.front().kind));
  }

  // This is a section: its first rounds, or some later ones. `next_section` makes those that
  // follow, while the collective is under way (Builder::laps). nullptr: there are no more.
  Schedule (*next_section)(Schedule section) = nullptr;
  std::int32_t laps = 0;       // so many a section
  std::int32_t laps_done = 0;  // up to the end of this one

  std::uint32_t rounds() const { return static_cast<std::uint32_t>(round_ends.size()); }
};

// Block `index` of what this rank gives (in place: in the receive buffer), and of what it gets.
// Collectives that give or get one thing only have it as their block for every index; reductions
// count in elements, and so does a reduce_scatter's block of the whole vector. A neighborhood's
// blocks are taken from send_blocks and recv_blocks wherever these are given.
Operand outgoing(const Shape& shape, int index);
Operand incoming(const Shape& shape, int index);

// A place in the node's memory, in uses where half_a comes first; any other is left as it is.
Location in_node(const Schedule& schedule, const Location& at);

// What the collective has in a user's buffer on this rank, blocks without elements left out and
// those that lie one after the other taken together; nothing where MPI ignores the buffer.
std::vector<Operand> buffer_runs(const Shape& shape, Buffer buffer);

// Bytes that an operand has in a message.
std::int64_t payload_bytes(const Shape& shape, const Operand& operand);

// Bytes from the buffer's origin that an operand touches, holes between them included.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
Range touched_bytes(const Shape& shape, const Operand& operand);

// For people and for golden files: a line of header, one line per step.
std::string print(const Schedule& schedule);

}  // namespace weft
