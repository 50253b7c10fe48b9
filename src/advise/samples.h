// Decides which calls are watched, and which of their buffers.
#pragma once

#include <cstdint>

#include "advise/extents.h"
#include "advise/record.h"
#include "advise/recorder.h"

namespace weft::advise {

// The buffer to be watched once a call has completed.
struct Sample {
  Bytes result;
  bool gaps = false;       // true if the result has gaps, whose memory other operations may use
  std::uint64_t call = 0;  // the number of the call at its site; 0: not to be watched
};

// True if `weft check` runs: then buffers of operations in flight are watched, and no intervals are
// measured (check.h).
extern bool checking;

// The number of one-sided communication windows. Needs the recorder's lock.
extern int one_sided;

// Watches a blocking call that has returned, if it is sampled. All functions need the recorder's
// lock.
void watch(Site& site, const Call& call, const Communicator& comm);
// Returns the buffer to be watched after a call that is started or initialised.
Sample to_be_watched(const Call& call, const Communicator& comm);
// Returns whether the latest call at this site is to be watched.
bool is_wanted(const Site& site);
// Watches a sampled call that has completed.
void watch_completed(Site& site, const Sample& sample);

}  // namespace weft::advise
