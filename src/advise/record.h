// The record of one rank, as it is laid out in memory, in the rank's file and in the job's file. It
// consists of plain structures in a mapped file, so that the data outlive a crash and need no
// separate writes. python/weft/advise/record.py reads this layout; kLayout must change with it.
#pragma once

#include <cstdint>

#include "library/generated/call_ids.h"

namespace weft::advise {

inline constexpr char kMagic[8] = {'w', 'e', 'f', 't', 'a', 'd', 'v', '\0'};
inline constexpr std::uint32_t kLayout = 9;

// Number of call sites in a record. Once the table is full, its last entry (kOthers) collects the
// calls of all further sites.
inline constexpr int kSites = 1024;
inline constexpr char kOthers[] = ":0:call sites beyond the first 1023";
// Number of places where messages are completed; further ones are dropped.
inline constexpr int kMessageWaits = 128;
inline constexpr int kModules = 64;
inline constexpr int kPath = 256;
inline constexpr int kWhere = 512;
inline constexpr int kOuters = 6;    // number of callers kept of the function that calls MPI
inline constexpr int kWindows = 32;  // kept intervals of each side of a site, chosen at random
inline constexpr int kTouches = 4;   // kept instructions of each side of a site
// Number of arrivals kept: the first eighth, and a selection of later ones.
inline constexpr int kArrivals = 8192;
// Number of events kept: half of it the first, half the latest.
inline constexpr int kEvents = 8192;

// The reason why an interval is unknown. python/weft/advise/record.py has the texts for users.
enum class Unknown : std::uint32_t {
  none,
  switched_off,
  not_supported,   // the processor or kernel lacks what guards need
  no_result,       // this rank receives no data
  unknown_extent,  // the result's size is not known, as in neighbourhood collectives
  on_the_stack,
  shared_page,  // a pending operation or one-sided communication may use the same page
  not_plain_memory,
  signals,      // a handler or thread blocks the signals that a guard needs
  threads,      // the process has threads unknown to the advisor
  breakpoint,   // the system permits no breakpoint
  neighbours,   // too many accesses beside the buffer
  system_call,  // a system call whose memory is not known
  mpi_call,     // an MPI call whose memory is not known
  never_touched,
  own_fault,  // the application had a fault or trap of its own
  budget,     // watching longer would have cost too much
  count
};
inline constexpr int kUnknowns = static_cast<int>(Unknown::count);

// The totals of one MPI function. If a function is short and never waits, only some calls are
// timed, each of which stands for the untimed ones before it. `calls` is then exact, and `ns` an
// estimate with the given variance.
struct CallTotal {
  char name[40];
  std::uint64_t calls;
  std::uint64_t ns;
  std::uint64_t timed;
  double variance_ns2;
};

// Proven lower and upper bounds of a duration.
struct Bounds {
  std::int64_t least_ns;
  std::int64_t most_ns;  // upper bound; kNoEnd: unknown
};
inline constexpr std::int64_t kNoEnd = -1;

// An instruction that first touched a result, or last wrote a send buffer.
struct Touch {
  std::uint64_t address;  // address after the instruction; 0: this entry and all following are free
  std::uint64_t returns_to;  // return address of its function if that keeps no frame; 0: unknown
  // Offset in the module as its symbols count; for libc functions, that of their caller.
  std::uint64_t offset;
  std::uint32_t module;  // module's number plus 1; 0: not looked up yet
  std::uint32_t count;
};

// The intervals before or after a site's calls.
struct Windows {
  std::uint64_t measured;
  std::uint64_t broken_off;  // observations that began and then ended as unknown
  std::uint64_t unknown[kUnknowns];
  Bounds kept[kWindows];
  Touch touches[kTouches];
};

// A reduction's operator, as far as a replay distinguishes it.
enum class Operator : std::uint64_t { other, sum, min, max, prod };

// A function on the call path from the program to a call.
struct OuterPlace {
  std::uint64_t offset;  // offset in the module as its symbols count
  std::uint32_t module;  // module's number plus 1; 0: this entry and all following are free
  std::uint32_t line;    // source line if the module is an interpreter's source file; otherwise 0
  std::uint32_t own;     // 1 if the function belongs to the program, not to a library
  std::uint32_t unused;
};

// The calls of one rank from one place, separated by function, kind of communicator and size class.
// The place of a persistent collective is that of its initialisation; each start counts as a call.
struct Site {
  std::uint64_t address;  // return address of the call; 0: this entry and all following are free
  std::uint64_t offset;   // offset in the module as its symbols count
  std::uint32_t module;
  std::uint32_t call;  // value of CallId
  std::uint32_t comm_size;
  std::uint32_t comm_nodes;
  std::uint32_t comm_kind;   // 0: world, 1: self, 2: another
  std::uint32_t size_class;  // 0: no bytes; k: from 2^(k-1) to below 2^k bytes
  std::uint32_t binding;     // language binding through which the call is made; value of Binding
  char where[kWhere];  // file, line and function of an interpreter's call; "" for compiled code
  OuterPlace outer[kOuters];  // callers of that function, the innermost first (callers.h)
  std::uint64_t own;          // 1 if the call is in the program, not in a library
  std::uint64_t calls;
  std::uint64_t bytes;
  std::uint64_t ns;  // time inside the call
  Windows after;     // intervals from the return to the first access to the result
  Windows before;    // intervals from the last write of the send buffer to the call
  // Completed non-blocking and persistent calls: their number, the time from start to the
  // completing call, the duration of that call, and the number of unsuccessful tests.
  std::uint64_t completed;
  std::uint64_t between_ns;
  std::uint64_t waited_ns;  // this request's share, if the completing call completed several
  std::uint64_t tests;
  std::uint64_t repeated;     // number of calls with the same arguments as the previous one
  std::uint64_t arguments;    // hash of the last call's arguments
  std::uint64_t next_window;  // number of the next call that is sampled
  std::uint64_t samples;      // number of sampled calls
  std::int64_t left_ns;       // time at which the last call returned
  std::int64_t gap_ns;        // time between the last two calls
  std::int64_t quiet_ns;      // upper bound of the latest interval before a call; 0: none
  std::int64_t again_ns;  // time from a call until its buffer was sent again at any site; 0: none
  Operator op;            // operator of the last call
};

// A place at which point-to-point messages that were started earlier are completed by one function.
struct MessageWait {
  std::uint64_t address;  // return address of the call; 0: this entry and all following are free
  std::uint64_t offset;   // offset in the module
  std::uint32_t module;
  std::uint32_t call;     // value of CallId
  std::uint32_t binding;  // value of Binding
  char where[kWhere];     // file, line and function of an interpreter's call; "" for compiled code
  std::uint64_t waits;    // calls that completed at least one message
  std::uint64_t messages;
  std::uint64_t bytes;
  // Sum of the times from the first message's start to the completing call.
  std::uint64_t between_ns;
  std::uint64_t waited_ns;  // time inside the completing calls, without the share of collectives
  std::uint64_t tests;
};

// The times at which a rank entered and left a collective.
struct Arrival {
  // Identity of the communicator or of a persistent request on it, equal on all its ranks.
  std::uint64_t comm;
  std::uint32_t sequence;
  std::uint32_t site;
  std::int64_t arrived_ns;
  std::int64_t left_ns;
  std::int32_t comm_rank;
  std::int32_t root;
};

// The kind of an interval: inside a call; from start to completing call; inside the completing
// call; from the return to the first access to the result; from the last write of the send buffer
// to the call; and `sent`, from a call to the first write of its send buffer, which the timeline
// does not show.
enum class What : std::uint16_t { call, in_flight, wait, after, before, sent = 16 };

// An interval, for the timeline and for the order of calls and accesses.
struct Event {
  std::int64_t began_ns;
  std::int64_t ended_ns;
  std::uint32_t site;
  What what;
  // For a blocking call, the number of preceding calls with other buffers (buffers.h).
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
  std::uint32_t cores;    // cores of this rank's node
  std::uint32_t threads;  // threads of the application that computed, counted at its end
  std::uint32_t node_ranks;
  std::uint32_t windows_off;  // value of Unknown: why no intervals are measured at all
  std::uint32_t event_room;   // capacity of `events` on this rank
  std::int64_t began_ns;
  std::int64_t ended_ns;
  std::int64_t in_mpi_ns;
  std::int64_t guarding_ns;
  std::int64_t clock_ns;  // ns to add to this rank's times to get times of rank 0's clock
  std::int64_t clock_error_ns;
  std::int64_t copy_bytes_per_ms;
  std::int64_t observing_ns;  // usual cost of observing an access
  std::uint64_t events;       // number of events, including those not kept
  std::uint64_t node;
  char host[64];
  char program[kPath];
  char library[kPath];  // path of the MPI library
  CallTotal totals[kCalls];
};

// The layout of a rank's file. The job's file holds the records of all ranks without free entries.
struct Record {
  Header header;
  char modules[kModules][kPath];
  Site sites[kSites];
  MessageWait message_waits[kMessageWaits];
  Arrival arrivals[kArrivals];
  Event events[kEvents];
};

}  // namespace weft::advise
