// Lists the facts about Weft and its options that determine the messages between ranks. All ranks
// of a job must agree on them.
#pragma once

#include "base/config.h"
#include "base/facts.h"

namespace weft {

Facts wire_facts(const Config& config);

}  // namespace weft
