// Defines the record of one rank, as it is stored in memory, in the rank's file and in the job's
// file. It consists of plain structures in a mapped file, so that it outlives a crash and is never
// written explicitly. python/weft/advise/record.py reads this layout; kLayout must be raised
// whenever it changes.
#pragma once

#include <cstdint>

#include "library/generated/call_ids.h"

namespace weft::advise {

inline constexpr char kMagic[8] = {'w', 'e', 'f', 't', 'a', 'd', 'v', '\0'};
inline constexpr std::uint32_t kLayout = 9;

// The number of call sites in a record. If there are more, all further sites share the last entry,
// whose name is kOthers.
inline constexpr int kSites = 1024;
inline constexpr char kOthers[] = ":0:call sites beyond the first 1023";
// The number of places in the program that complete point-to-point messages. If there are more,
// further places are not recorded.
inline constexpr int kMessageWaits = 128;
inline constexpr int kModules = 64;
inline constexpr int kPath = 256;
inline constexpr int kWhere = 512;
// Number of functions on the call path that are kept for each site.
inline constexpr int kOuters = 6;
// The number of measured intervals that are kept before each call site, and after it. They are
// chosen at random.
inline constexpr int kWindows = 32;
// The number of instructions that are kept for each call site: those that wrote its send buffer
// last, and those that accessed its receive buffer first.
inline constexpr int kTouches = 4;
// The number of arrivals at collectives that are kept. The first eighth of the table holds the
// first arrivals, the rest a selection of the later ones.
inline constexpr int kArrivals = 8192;
// The number of events (intervals for the timeline) that are kept. Half of the table holds the
// first events, the other half the latest.
inline constexpr int kEvents = 8192;

// Says why an interval could not be measured. python/weft/advise/record.py has a text for the user
// for each of these reasons.
enum class Unknown : std::uint32_t {
  none,
  switched_off,
  not_supported,   // the processor or kernel does not support page protection of buffers
  no_result,       // this rank receives no data
  unknown_extent,  // the size of the receive buffer is unknown, as in neighbourhood collectives
  on_the_stack,
  shared_page,  // a pending operation or one-sided communication may use the same page
  not_plain_memory,
  signals,      // a signal handler or thread blocks a signal that accesses raise
  threads,      // the process has threads that the advisor does not know
  breakpoint,   // the system permits no breakpoint
  neighbours,   // too many accesses to other memory on the buffer's pages
  system_call,  // a system call that may use memory of which the advisor does not know
  mpi_call,     // an MPI call that may use memory of which the advisor does not know
  never_touched,
  own_fault,  // the application had a fault or trap of its own
  budget,     // watching longer would have cost too much
  count
};
inline constexpr int kUnknowns = static_cast<int>(Unknown::count);

// The totals of one MPI function. If the function is short and never waits, only some of its calls
// are timed, and each stands for the untimed calls before it. In that case `calls` is still exact,
// and `ns` is an estimate with variance `variance_ns2`.
struct CallTotal {
  char name[40];
  std::uint64_t calls;
  std::uint64_t ns;
  std::uint64_t timed;
  double variance_ns2;
};

// Lower and upper bounds of a duration in ns.
struct Bounds {
  std::int64_t least_ns;
  std::int64_t most_ns;  // kNoEnd if unknown
};
inline constexpr std::int64_t kNoEnd = -1;

// An instruction that was the first to access a receive buffer, or the last to write a send buffer.
struct Touch {
  // Address behind the instruction; 0: this and all following entries are unused.
  std::uint64_t address;
  // Return address of the function if it keeps no stack frame; 0 if unknown.
  std::uint64_t returns_to;
  // The offset in the executable or library, as its symbol table counts; for functions of the C
  // library, the offset of the place that calls them.
  std::uint64_t offset;
  std::uint32_t module;  // index in Record::modules plus 1; 0 if not looked up yet
  std::uint32_t count;
};

// The measured idle times of a buffer in the calls at a call site: from the last access to the
// call, or from the call to the first access.
struct Windows {
  std::uint64_t measured;
  std::uint64_t broken_off;  // observations that began, and then ended without a measurement
  std::uint64_t unknown[kUnknowns];
  Bounds kept[kWindows];
  Touch touches[kTouches];
};

// The operator of a reduction, as far as a replay of the calls distinguishes operators.
enum class Operator : std::uint64_t { other, sum, min, max, prod };

// A function on the call path from the program's main() to an MPI call.
struct OuterPlace {
  std::uint64_t offset;  // offset in the executable or library, as its symbol table counts
  // index in Record::modules plus 1; 0: this and all following entries are unused
  std::uint32_t module;
  std::uint32_t line;  // source line if the module is an interpreter's source file; otherwise 0
  std::uint32_t own;   // 1 if the function belongs to the program, not to a library
  std::uint32_t unused;
};

// The calls of one MPI function from one place in the program, for one kind of communicator and one
// size class. A persistent collective belongs to the place of its initialisation, and each start
// counts as a call.
struct Site {
  // Return address of the call; 0: this and all following entries are unused.
  std::uint64_t address;
  std::uint64_t offset;  // offset in the executable or library, as its symbol table counts
  std::uint32_t module;
  std::uint32_t call;  // value of CallId
  std::uint32_t comm_size;
  std::uint32_t comm_nodes;
  std::uint32_t comm_kind;   // 0: MPI_COMM_WORLD, 1: MPI_COMM_SELF, 2: another
  std::uint32_t size_class;  // 0: no bytes; k: from 2^(k-1) to below 2^k bytes
  std::uint32_t binding;  // value of Binding: the language binding through which the call is made
  // File, line and function if an interpreter makes the call; "" for compiled code.
  char where[kWhere];
  OuterPlace outer[kOuters];  // the functions that called it, innermost first (callers.h)
  std::uint64_t own;          // 1 if the program itself makes the call, not a library
  std::uint64_t calls;
  std::uint64_t bytes;
  std::uint64_t ns;  // total time inside the calls
  Windows after;     // intervals from the call's return to the first access to its receive buffer
  Windows before;    // intervals from the last write of the send buffer to the call
  // For non-blocking and persistent calls. completed: the number of completed operations.
  // between_ns: the total time from start to the completing call. waited_ns: the total time inside
  // the completing calls. tests: the number of unsuccessful tests.
  std::uint64_t completed;
  std::uint64_t between_ns;
  // Time inside the completing calls; if a call completes several requests, each gets an equal
  // share.
  std::uint64_t waited_ns;
  std::uint64_t tests;
  std::uint64_t repeated;     // number of calls with the same arguments as the call before
  std::uint64_t arguments;    // hash of the last call's arguments
  std::uint64_t next_window;  // number of the next call at this site whose buffers will be watched
  std::uint64_t samples;      // number of calls whose buffers were watched
  std::int64_t left_ns;       // time at which the last call returned
  std::int64_t gap_ns;        // time between the last two calls
  // Upper bound of the latest measured time from the last write of the send buffer to a call; 0 if
  // there is none.
  std::int64_t quiet_ns;
  // Time from a call until its buffer was sent again by any call; 0 if never.
  std::int64_t again_ns;
  Operator op;  // operator of the last call
};

// A place in the program where one MPI function completes messages (point-to-point) that were
// started before.
struct MessageWait {
  // Return address of the call; 0: this and all following entries are unused.
  std::uint64_t address;
  std::uint64_t offset;  // offset in the executable or library
  std::uint32_t module;
  std::uint32_t call;     // value of CallId
  std::uint32_t binding;  // value of Binding
  // File, line and function if an interpreter makes the call; "" for compiled code.
  char where[kWhere];
  std::uint64_t waits;  // number of calls that completed at least one message
  std::uint64_t messages;
  std::uint64_t bytes;
  // The time from the start of the first completed message to the completing call, summed over all
  // completing calls.
  std::uint64_t between_ns;
  std::uint64_t waited_ns;  // time inside the completing calls, without the share of collectives
  std::uint64_t tests;
};

// The times at which a rank entered and left a collective.
struct Arrival {
  // The identity of the communicator, or of a persistent request on it. It is equal on all ranks of
  // the communicator.
  std::uint64_t comm;
  std::uint32_t sequence;
  std::uint32_t site;
  std::int64_t arrived_ns;
  std::int64_t left_ns;
  std::int32_t comm_rank;
  std::int32_t root;
};

// The kinds of intervals. call: inside a blocking call. in_flight: from the start of an operation
// to the completing call. wait: inside the completing call. after: from the return of a call to the
// first access to its receive buffer. before: from the last write of the send buffer to the call.
// sent: from a call to the next write of its send buffer, which the timeline does not show.
enum class What : std::uint16_t { call, in_flight, wait, after, before, sent = 16 };

// An interval that the timeline shows. The order of calls and accesses is also derived from it.
struct Event {
  std::int64_t began_ns;
  std::int64_t ended_ns;
  std::uint32_t site;
  What what;
  // For a blocking call: how many of the calls directly before it use other buffers (buffers.h);
  // otherwise 0.
  std::uint16_t apart;
};

struct Header {
  char magic[8];
  std::uint32_t layout;
  std::uint32_t calls;  // number of entries of `totals`
  std::uint32_t rank;
  std::uint32_t ranks;
  std::uint32_t finalized;
  std::uint32_t sites;
  std::uint32_t arrivals;
  std::uint32_t modules;
  std::uint32_t message_waits;
  std::uint32_t nodes;
  std::uint32_t cores;    // number of cores of this rank's node
  std::uint32_t threads;  // number of the application's threads that computed
  std::uint32_t node_ranks;
  std::uint32_t windows_off;  // value of Unknown: the reason why no intervals were measured at all
  std::uint32_t event_room;   // number of entries of `events` on this rank
  std::int64_t began_ns;
  std::int64_t ended_ns;
  std::int64_t in_mpi_ns;
  std::int64_t guarding_ns;
  // The difference in ns that must be added to this rank's times to get times of rank 0's clock.
  std::int64_t clock_ns;
  std::int64_t clock_error_ns;
  std::int64_t copy_bytes_per_ms;
  std::int64_t observing_ns;  // upper estimate of the time in ns that observing an access takes
  std::uint64_t events;       // number of all events, including those not kept
  std::uint64_t node;
  char host[64];
  char program[kPath];
  char library[kPath];  // path of the MPI library
  CallTotal totals[kCalls];
};

// The layout of a rank's file. The job's file contains the records of all ranks, each without the
// unused entries of its tables.
struct Record {
  Header header;
  char modules[kModules][kPath];
  Site sites[kSites];
  MessageWait message_waits[kMessageWaits];
  Arrival arrivals[kArrivals];
  Event events[kEvents];
};

}  // namespace weft::advise
