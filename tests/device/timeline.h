// A timeline of what the stand-in's streams do, with the processor's clock. WEFT_STANDIN_TIMELINE
// names a file, to which each process adds its rank: Chromium's format, as of `weft run --trace`.
#pragma once

#include <string>

#include "streams.h"

namespace standin {

// Returns the task; if there is a timeline, one that also adds an event of this name to it.
Task named(const std::string& name, Task task);

// Names the track of what this thread does from now on.
void begin_track(const std::string& name);
std::string current_track();

}  // namespace standin
