// Publishes which call this rank is in, for `weft check`, which tells of a job that gets on no more
// (python/weft/check/waits.py). It needs no lock: the first thread that enters a call has the entry
// until it leaves; other threads' calls only show that the rank gets on.
#pragma once

#include "advise/callers.h"
#include "library/generated/call_ids.h"

namespace weft::advise {

void waits_begin(const char* directory, int rank, int ranks);
// Returns whether this call is published now; then wait_ends() must follow.
bool wait_begins(CallId call, Called called);
void wait_ends();
// A test has found nothing complete. got_on(): one has, or an operation was started.
void polls(CallId call, Called called);
void got_on();

}  // namespace weft::advise
