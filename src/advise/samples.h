// Decides which collective calls are watched for accesses to their buffers, and which of their
// buffers.
#pragma once

#include <cstdint>

#include "advise/extents.h"
#include "advise/record.h"
#include "advise/recorder.h"

namespace weft::advise {

// A buffer that is to be watched for accesses when its call has completed.
struct Sample {
  Bytes result;
  bool gaps = false;  // true if other operations may use memory in gaps of the buffer
  // Number of the call at its call site; 0 if the buffer is not to be watched.
  std::uint64_t call = 0;
};

// True under `weft check`. Buffers are then watched while operations are in flight, and no
// intervals are measured (check.h).
extern bool checking;

// The number of one-sided communication windows that exist. Recorder::lock() must be held.
extern int one_sided;

// Begins to watch a buffer of a blocking call that has returned, if the call is sampled.
// Recorder::lock() must be held when this function or a following one is called.
void watch(Site& site, const Call& call, const Communicator& comm);
// Returns the receive buffer that is to be watched when this non-blocking or persistent call is
// complete.
Sample to_be_watched(const Call& call, const Communicator& comm);
// Returns whether the latest call at this site is to be watched.
bool is_wanted(const Site& site);
// Begins to watch the buffer of a sampled call that has completed.
void watch_completed(Site& site, const Sample& sample);

}  // namespace weft::advise
