// Writes the findings of `weft check` to a file of this rank, one line each, as soon as they are
// found. The file is thus complete even if the program is killed. All functions need the recorder's
// lock.
#pragma once

#include "advise/callers.h"
#include "base/code_place.h"
#include "library/generated/call_ids.h"

namespace weft::advise {

// The names of the rules are those of python/weft/check/rules.py.
inline constexpr char kSendWritten[] = "send-written", kReceiveTouched[] = "receive-touched",
                      kOverlap[] = "overlap", kGone[] = "buffer-gone", kBelowStack[] = "stack-gone",
                      kCommFreed[] = "communicator-freed", kNeverCompleted[] = "never-completed",
                      kOrder[] = "order", kCounts[] = "counts";

// A line of the program, and the MPI call on it, if any.
struct Line {
  Place place{};
  const char* where = "";  // "file:line:function" of an interpreted program; "" for compiled code
  const char* call = "";
};

void findings_begin(const char* directory, int rank);
// Returns whether findings are written, that is, whether their file is open.
bool findings_go();
// Returns the number of this rank in MPI_COMM_WORLD.
int finding_rank();

Line line_of(const Place& place);
Line line_of(CallId call, const Caller& caller);
// Returns a number by which a call on one line of the program is known; it is never 0.
std::uint64_t key_of_line(CallId call, const Caller& caller);

// Writes a finding, unless the same one was written before. `rule` is its kind, and `rank` is the
// rank to which `start` belongs. `other` is the offending access or the other rank's call.
void tell(const char* rule, int rank, const Line& start, const Line& other,
          const char* detail = "");

}  // namespace weft::advise
