// Reads the site file of the installation that this library belongs to.
#pragma once

#include "base/site_file.h"

namespace weft {

// Returns the settings of the site file, which is read at the first call. Nothing is read under
// `weft run`, which has read the file already.
const SiteFile& own_site();

}  // namespace weft
