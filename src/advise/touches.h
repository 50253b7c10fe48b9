// Finds the places in the program that accessed guarded memory.
#pragma once

#include "advise/record.h"

namespace weft::advise {

// Looks up the places of a site's accesses that are not known yet. Needs the recorder's lock.
void note_touches(Site& site);

}  // namespace weft::advise
