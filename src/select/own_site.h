// Reads the site file of the installation that this library belongs to.
#pragma once

#include "base/site_file.h"

namespace weft {

// Returns the settings, which are read once. Nothing is read under `weft run`, which has read them
// already.
const SiteFile& own_site();

}  // namespace weft
