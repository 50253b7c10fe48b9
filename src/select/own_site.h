// Reads the site file of this installation of Weft: settings that an administrator has made for all
// users.
#pragma once

#include "base/site_file.h"

namespace weft {

// Returns the settings of the site file, which is read at the first call. Under `weft run` nothing
// is read, since that command has read the file already.
const SiteFile& own_site();

}  // namespace weft
