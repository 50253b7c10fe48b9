// The record of one rank, as it lies in memory, in the rank's file and in the job's file.
// Why plain structures in a mapped file: what a rank has measured outlives its crash, and nothing
// is written at any other time than that of the stores themselves. python/weft/advise/record.py
// reads the same layout; kLayout changes with every change here.
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

// Why a window is not known. The words for them are in python/weft/advise/record.py.
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

// Of calls that never wait and are short not each is timed: a timed one stands for those before it,
// too. So `calls` is exact, and `ns` estimated with that variance.
struct CallTotal {
  char name[40];
  std::uint64_t calls;
  std::uint64_t ns;
  std::uint64_t timed;
  double variance_ns2;
};

// A length of time: what is proven of it.
struct Bounds {
  std::int64_t least_ns;
  std::int64_t most_ns;  // kNoEnd: not known
};
inline constexpr std::int64_t kNoEnd = -1;

// An instruction that touched a result first, or wrote what is sent last.
struct Touch {
  std::uint64_t address;     // behind it; 0: this one and all after it are free
  std::uint64_t returns_to;  // its function, if that keeps no frame; 0: not known
  std::uint64_t offset;      // in the module, as its symbols count; of the caller in place of libc
  std::uint32_t module;      // one more than its number; 0: not looked for
  std::uint32_t count;
};

// On one side of a site's calls.
struct Windows {
  std::uint64_t measured;
  std::uint64_t broken_off;  // observations that had begun, and ended as unknown
  std::uint64_t unknown[kUnknowns];
  Bounds kept[kWindows];
  Touch touches[kTouches];
};

// Of a reduction, as far as a replay can tell them apart.
enum class Operator : std::uint64_t { other, sum, min, max, prod };

// A function on the way from the program to a call.
struct OuterPlace {
  std::uint64_t offset;  // in the module, as its symbols count
  std::uint32_t module;  // one more than its number; 0: this one and all after it are free
  std::uint32_t line;    // of an interpreter's file, which the module is then; else 0
  std::uint32_t own;     // it is the program's, not a library's
  std::uint32_t unused;
};

// One call site, call, kind of communicator and size class of one rank. Of a persistent collective:
// where it was planned; a call is a start.
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
  // Of non-blocking and persistent calls: those that completed, from their start to the call that
  // completed them, how long that one took, and how many tests there were before.
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

// A place that completes messages which were started before, by one call.
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

// When one rank came to one collective and left it.
struct Arrival {
  std::uint64_t comm;  // or a plan of it; the same on all its ranks
  std::uint32_t sequence;
  std::uint32_t site;
  std::int64_t arrived_ns;
  std::int64_t left_ns;
  std::int32_t comm_rank;
  std::int32_t root;
};

// sent: from a call to the first write of what it sent; on no timeline.
enum class What : std::uint16_t { call, in_flight, wait, after, before, sent = 16 };

// The timeline and the order of calls and accesses are made of these.
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

// A rank's file. The job's file holds one of them for each rank, without what is free.
struct Record {
  Header header;
  char modules[kModules][kPath];
  Site sites[kSites];
  MessageWait message_waits[kMessageWaits];
  Arrival arrivals[kArrivals];
  Event events[kEvents];
};

}  // namespace weft::advise
