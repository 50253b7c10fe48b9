// Which calls' windows are watched, and at which buffer.
#pragma once

#include <cstdint>

#include "advise/extents.h"
#include "advise/record.h"
#include "advise/recorder.h"

namespace weft::advise {

// The result of a call that is to be watched when the call has completed.
struct Sample {
  Bytes result;
  bool gaps = false;       // other operations may use what lies between its blocks
  std::uint64_t call = 0;  // the number of the call at its site; 0: it is not to be watched
};

// Windows of one-sided communication; with the recorder's lock held.
extern int one_sided;

// All with the recorder's lock held.
// Of a blocking call, which has returned.
void watch(Site& site, const Call& call, const Communicator& comm);
// Of a call that is started, or planned: what is watched after it.
Sample to_be_watched(const Call& call, const Communicator& comm);
// Whether the latest call at this site is wanted.
bool is_wanted(const Site& site);
// It has completed.
void watch_completed(Site& site, const Sample& sample);

}  // namespace weft::advise
