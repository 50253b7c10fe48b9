// What of a build and of its options decides what travels between ranks: all must have it alike.
#pragma once

#include "base/config.h"
#include "base/facts.h"

namespace weft {

Facts wire_facts(const Config& config);

}  // namespace weft
