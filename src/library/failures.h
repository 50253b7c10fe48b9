// Failures: whether ranks go on after another has failed (ULFM), as the library tells.
#pragma once

namespace weft {

// Right after the library's own initialisation, or later.
bool goes_on_after_failures();

}  // namespace weft
