// What of a build and of its options decides what travels between ranks: all must have it alike.
// Why here and not where each option is used: an option that is forgotten hangs silently, so that
// whoever adds one must decide here whether it is each rank's own affair.
#pragma once

#include "base/config.h"
#include "base/facts.h"

namespace weft {

Facts wire_facts(const Config& config);

// The same of what a hint or an option may ask for.
Fact engine_fact(const std::string& name, Engine engine);
Fact placement_fact(const std::string& name, const PlacementPolicy& placement);

}  // namespace weft
