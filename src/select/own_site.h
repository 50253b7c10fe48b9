// The site file of the installation that this library belongs to.
#pragma once

#include "base/site_file.h"

namespace weft {

// Returns what it says, read once. Below `weft run`, which has read it, nothing is read.
const SiteFile& own_site();

}  // namespace weft
