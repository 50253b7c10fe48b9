// The second step from a call to its plan chooses engine and algorithm by the rule, or finds that
// engine auto learns about such calls.
#pragma once

#include <optional>

#include "runtime/adaptive/call_classes.h"
#include "runtime/start/eligible.h"
#include "select/selector.h"

namespace weft {

struct Chosen {
  std::optional<Reason> declined{};
  Choice choice{};
  bool by_rule = true;  // inside one node the rule tells the engine, and whether the call is Weft's
  CallClass* call_class =
      nullptr;  // engine auto learns about such calls: each has a choice of its own
};

// Chooses by rank-invariant facts.
Chosen chosen_for(const Asked& asked, const Eligible& eligible);
// Chooses for a call of this call class that takes this variant.
Chosen chosen_at(const Asked& asked, const Eligible& eligible, const CallClass& call_class,
                 int variant);

// Returns whether the user wants Weft's algorithm, even if the library's is faster.
bool is_named(const Runtime& runtime, const Communicator& communicator, const Shape& shape);
// Chooses who progresses a call in memory while the application computes: a thread costs the
// application more than it gains if the call is short or no core is free. alone: the thread can do
// it.
Engine engine_in_memory(const Runtime& runtime, const Shape& shape, bool alone);

}  // namespace weft
