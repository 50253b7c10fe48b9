// Writes the errors that `weft check` finds to a file of this rank. Each is written as one line as
// soon as it is found, so that the file is complete even if the program is killed. Recorder::lock()
// must be held when these functions are called.
#pragma once

#include "advise/callers.h"
#include "base/code_place.h"
#include "library/generated/call_ids.h"

namespace weft::advise {

// These names of the checked rules must be the same as in python/weft/check/rules.py.
inline constexpr char kSendWritten[] = "send-written", kReceiveTouched[] = "receive-touched",
                      kOverlap[] = "overlap", kGone[] = "buffer-gone", kBelowStack[] = "stack-gone",
                      kCommFreed[] = "communicator-freed", kNeverCompleted[] = "never-completed",
                      kOrder[] = "order", kCounts[] = "counts";

// A place in the program's code and, if it is a call of an MPI function, the name of that function.
struct Line {
  Place place{};
  const char* where = "";  // "file:line:function" of an interpreted program; "" for compiled code
  const char* call = "";
};

void findings_begin(const char* directory, int rank);
// Returns whether errors are written, that is, whether the file for them is open.
bool findings_go();
// Returns this process's rank in MPI_COMM_WORLD.
int finding_rank();

Line line_of(const Place& place);
Line line_of(CallId call, const Caller& caller);
// Returns a number by which a call on one line of the program is known; it is never 0.
std::uint64_t key_of_line(CallId call, const Caller& caller);

// Writes an error to the file, unless the same one was written before. rule: one of the names
// above. rank: the rank whose call is wrong. start: the place of that call. other: the place of the
// wrong access, or of another rank's call. detail: further words for the user.
void tell(const char* rule, int rank, const Line& start, const Line& other,
          const char* detail = "");

}  // namespace weft::advise
