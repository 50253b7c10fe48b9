// Publishes which call this rank is in, for `weft check`, which reports a job that makes no
// progress (python/weft/check/waits.py). It needs no lock: the first thread that enters a call owns
// the entry until it returns. Calls of other threads only show that the rank makes progress.
#pragma once

#include "advise/callers.h"
#include "library/generated/call_ids.h"

namespace weft::advise {

void waits_begin(const char* directory, int rank, int ranks);
// Returns whether this call is now published; then wait_ends() must follow.
bool wait_begins(CallId call, Called called);
void wait_ends();
// polls() records a test that found nothing complete; got_on() records a completion or a new
// operation.
void polls(CallId call, Called called);
void got_on();

}  // namespace weft::advise
