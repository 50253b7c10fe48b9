// Lists the facts about a build and its options that determine the messages between ranks. All
// ranks must agree on them.
#pragma once

#include "base/config.h"
#include "base/facts.h"

namespace weft {

Facts wire_facts(const Config& config);

}  // namespace weft
