// The record of one rank, as it is laid out in memory, in the rank's file and in the job's file. It
// consists of plain structures in a mapped file, so that the data outlive a crash and need no
// separate writes. python/weft/advise/record.py reads this layout; kLayout must change with it.
#pragma once

#include <cstdint>

#include "library/generated/call_ids.h"

namespace weft::advise {

inline constexpr char kMagic[8] = {'w', 'e', 'f', 't', 'a', 'd', 'v', '\0'};
inline constexpr std::uint32_t kLayout = 9;

inline constexpr int kSites = 1024;  // the last takes what finds no place, under kOthers
inline constexpr char kOthers[] = ":0:call sites beyond the first 1023";
inline constexpr int kMessageWaits = 128;  // what comes after finds no place
inline constexpr int kModules = 64;
inline constexpr int kPath = 256;
inline constexpr int kWhere = 512;
inline constexpr int kOuters = 6;       // callers of the function that calls MPI
inline constexpr int kWindows = 32;     // kept of each side of a site, chosen at random
inline constexpr int kTouches = 4;      // instructions of each side of a site, the first seen
inline constexpr int kArrivals = 8192;  // the first eighth stays, the others are thinned out
inline constexpr int kEvents = 8192;    // the first half stays, the others are the latest

// Says why an interval is not known. The texts for users are in python/weft/advise/record.py.
enum class Unknown : std::uint32_t {
  none,
  switched_off,
  not_supported,   // processor or kernel
  no_result,       // this rank has none
  unknown_extent,  // neighbourhoods, intercommunicators
  on_the_stack,
  shared_page,  // with memory that a pending operation or one-sided communication may use
  not_plain_memory,
  signals,      // a handler or thread holds back the signals that a guard needs
  threads,      // some that the advisor does not know
  breakpoint,   // the system permits none
  neighbours,   // too many accesses beside the result
  system_call,  // one whose memory is not known
  mpi_call,     // the same
  never_touched,
  own_fault,  // the application had a fault or trap of its own
  budget,     // watching on would have cost too much
  count
};
inline constexpr int kUnknowns = static_cast<int>(Unknown::count);

// The calls of a function. Of short calls that never wait only some are timed, and each stands for
// the untimed ones before it. So `calls` is exact, and `ns` an estimate with the given variance.
struct CallTotal {
  char name[40];
  std::uint64_t calls;
  std::uint64_t ns;
  std::uint64_t timed;
  double variance_ns2;
};

// A proven lower and upper bound of a length of time.
struct Bounds {
  std::int64_t least_ns;
  std::int64_t most_ns;  // kNoEnd: not known
};
inline constexpr std::int64_t kNoEnd = -1;

// An instruction that first touched a result, or last wrote a send buffer.
struct Touch {
  std::uint64_t address;     // behind it; 0: this one and all after it are free
  std::uint64_t returns_to;  // its function, if that keeps no frame; 0: not known
  std::uint64_t offset;      // in the module, as its symbols count; of the caller in place of libc
  std::uint32_t module;      // one more than its number; 0: not looked for
  std::uint32_t count;
};

// The intervals before or after a site's calls.
struct Windows {
  std::uint64_t measured;
  std::uint64_t broken_off;  // observations that had begun, and ended as unknown
  std::uint64_t unknown[kUnknowns];
  Bounds kept[kWindows];
  Touch touches[kTouches];
};

// The operator of a reduction, as far as a replay distinguishes them.
enum class Operator : std::uint64_t { other, sum, min, max, prod };

// A function on the call path from the program to a call.
struct OuterPlace {
  std::uint64_t offset;  // in the module, as its symbols count
  std::uint32_t module;  // one more than its number; 0: this one and all after it are free
  std::uint32_t line;    // of an interpreter's file, which the module is then; else 0
  std::uint32_t own;     // it is the program's, not a library's
  std::uint32_t unused;
};

// The calls of one rank from one place, by function, kind of communicator and size class. For a
// persistent collective the place is that of its initialisation, and each start counts as a call.
struct Site {
  std::uint64_t address;  // 0: this one and all after it are free
  std::uint64_t offset;   // in the module, as its symbols count
  std::uint32_t module;
  std::uint32_t call;  // CallId
  std::uint32_t comm_size;
  std::uint32_t comm_nodes;
  std::uint32_t comm_kind;    // 0 world, 1 self, 2 another
  std::uint32_t size_class;   // 0: no bytes; k: from 2^(k-1) bytes on
  std::uint32_t binding;      // of a language, that it is called by: Binding
  char where[kWhere];         // file, line and function of an interpreter's call; "": none
  OuterPlace outer[kOuters];  // who called that function, the innermost first (callers.h)
  std::uint64_t own;          // the call itself is in the program, not in a library
  std::uint64_t calls;
  std::uint64_t bytes;
  std::uint64_t ns;  // inside the call
  Windows after;     // from the return to the first touch of the result
  Windows before;    // from the last write of what is sent to the call
  // Completed non-blocking and persistent calls: their number, the time from start to the
  // completing call, the duration of that call, and the number of unsuccessful tests.
  std::uint64_t completed;
  std::uint64_t between_ns;
  std::uint64_t waited_ns;  // a part of it where that one completed several
  std::uint64_t tests;
  std::uint64_t repeated;     // with the arguments of the call before
  std::uint64_t arguments;    // of the last call, as a number
  std::uint64_t next_window;  // the call at which the next window is wanted
  std::uint64_t samples;      // calls at which one was wanted
  std::int64_t left_ns;       // when the last call ended
  std::int64_t gap_ns;        // from the call before to the last one
  std::int64_t quiet_ns;      // the last window before a call, at most; or 0
  std::int64_t again_ns;  // from a call until its buffer was sent again, wherever that was; or 0
  Operator op;            // of the last call
};

// A place that completes point-to-point messages started earlier, by one kind of call.
struct MessageWait {
  std::uint64_t address;  // 0: this one and all after it are free
  std::uint64_t offset;   // in the module
  std::uint32_t module;
  std::uint32_t call;     // CallId
  std::uint32_t binding;  // Binding
  char where[kWhere];     // as of a Site
  std::uint64_t waits;    // calls that completed some
  std::uint64_t messages;
  std::uint64_t bytes;
  std::uint64_t between_ns;  // from the first one's start to the call that completed it
  std::uint64_t waited_ns;   // inside that call, less the part of collectives
  std::uint64_t tests;
};

// The times at which a rank entered and left a collective.
struct Arrival {
  std::uint64_t comm;  // or a plan of it; the same on all its ranks
  std::uint32_t sequence;
  std::uint32_t site;
  std::int64_t arrived_ns;
  std::int64_t left_ns;
  std::int32_t comm_rank;
  std::int32_t root;
};

// The kind of an interval. sent: from a call to the first write of its send buffer; it is not on
// the timeline.
enum class What : std::uint16_t { call, in_flight, wait, after, before, sent = 16 };

// An interval for the timeline and for the order of calls and accesses.
struct Event {
  std::int64_t began_ns;
  std::int64_t ended_ns;
  std::uint32_t site;
  What what;
  std::uint16_t apart;  // of a blocking call: so many before it have other buffers (buffers.h)
};

struct Header {
  char magic[8];
  std::uint32_t layout;
  std::uint32_t calls;  // in `totals`
  std::uint32_t rank;
  std::uint32_t ranks;
  std::uint32_t finalized;
  std::uint32_t sites;
  std::uint32_t arrivals;
  std::uint32_t modules;
  std::uint32_t message_waits;
  std::uint32_t nodes;
  std::uint32_t cores;    // that this rank's node has
  std::uint32_t threads;  // of the application that computed, at its end
  std::uint32_t node_ranks;
  std::uint32_t windows_off;  // Unknown: why there are none at all
  std::uint32_t event_room;   // of this rank
  std::int64_t began_ns;
  std::int64_t ended_ns;
  std::int64_t in_mpi_ns;
  std::int64_t guarding_ns;
  std::int64_t clock_ns;  // to be added to this rank's times
  std::int64_t clock_error_ns;
  std::int64_t copy_bytes_per_ms;
  std::int64_t observing_ns;  // what to observe a touch takes, mostly
  std::uint64_t events;       // that there were
  std::uint64_t node;
  char host[64];
  char program[kPath];
  char library[kPath];  // of MPI
  CallTotal totals[kCalls];
};

// A rank's file. The job's file holds these of all ranks, without free entries.
struct Record {
  Header header;
  char modules[kModules][kPath];
  Site sites[kSites];
  MessageWait message_waits[kMessageWaits];
  Arrival arrivals[kArrivals];
  Event events[kEvents];
};

}  // namespace weft::advise
