// Finds the places in the program whose instructions accessed guarded buffers.
#pragma once

#include "advise/record.h"

namespace weft::advise {

// Looks up the places in the program of the site's accessing instructions, for those that are not
// known yet. The caller must hold Recorder::lock().
void note_touches(Site& site);

}  // namespace weft::advise
