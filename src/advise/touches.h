// The places in the program that have touched what guards watched.
#pragma once

#include "advise/record.h"

namespace weft::advise {

// Finds the places of a site's touches that are not known yet. With the recorder's lock held.
void note_touches(Site& site);

}  // namespace weft::advise
