// Finds the places in the program whose instructions accessed watched buffers.
#pragma once

#include "advise/record.h"

namespace weft::advise {

// Finds the places in the program of those instructions that accessed the buffers of this call
// site, if they are not known yet. Recorder::lock() must be held.
void note_touches(Site& site);

}  // namespace weft::advise
