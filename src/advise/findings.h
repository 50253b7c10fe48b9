// Writes what `weft check` finds into a file of this rank, a line each, as soon as it is found: so
// it is there even if the program is killed. All functions need the recorder's lock.
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

// A line of the program, and the MPI call that it makes, if it makes one.
struct Line {
  Place place{};
  const char* where = "";  // of an interpreter's program: "file:line:function"
  const char* call = "";
};

void findings_begin(const char* directory, int rank);
// Returns whether there is a file for findings.
bool findings_go();
// Returns this rank in MPI_COMM_WORLD.
int finding_rank();

Line line_of(const Place& place);
Line line_of(CallId call, const Caller& caller);

// Tells each mistake once. `other` is the access or the other call. The rank is that of `start`.
void tell(const char* rule, int rank, const Line& start, const Line& other,
          const char* detail = "");

}  // namespace weft::advise
