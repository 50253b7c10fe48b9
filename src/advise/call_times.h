// Which calls are timed: all that may wait; of those that never do and turn out short about one in
// sixteen, since two readings of the clock would take as long as the call.
#pragma once

#include <cstdint>

#include "advise/record.h"

namespace weft::advise {

enum class Waits : bool { never, perhaps };

// Whether the next call is timed; without any lock.
bool is_timed(CallId id, Waits waits);
// Both with the recorder's lock held. Returns the time of this call and of those that it stands
// for.
std::int64_t count_timed(CallTotal& total, CallId id, std::int64_t ns);
void count_untimed(CallTotal& total, CallId id);

}  // namespace weft::advise
