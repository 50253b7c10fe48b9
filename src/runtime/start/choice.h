// The second step from a call to its plan: chooses engine and algorithm by the rule, or finds that
// engine auto learns about such calls.
#pragma once

#include <optional>

#include "runtime/adaptive/call_classes.h"
#include "runtime/start/eligible.h"
#include "select/selector.h"

namespace weft {

struct ChoiceResult {
  std::optional<Reason> declined{};
  Choice choice{};
  bool by_rule = true;  // true if the rule still determines the engine, and whether Weft carries
                        // the call out, for calls on a single node
  CallClass* call_class =
      nullptr;  // set if engine auto learns about such calls, so that each call has its own choice
};

// Chooses engine and algorithm by facts that are equal on all ranks.
ChoiceResult chosen_for(const PlanRequest& asked, const Eligible& eligible);
// Chooses engine and algorithm for a call that takes variant number `variant` of its class.
ChoiceResult chosen_at(const PlanRequest& asked, const Eligible& eligible,
                       const CallClass& call_class, int variant);

// Returns whether the user named one of Weft's algorithms; it is then used even where the library's
// is faster.
bool is_named(const Runtime& runtime, const Communicator& communicator, const Shape& shape);
// Chooses the engine that progresses a call in shared memory while the application computes. A
// thread costs the application more than it gains if the call is short or no core is free. alone:
// the progress thread can advance the call without MPI.
Engine engine_in_memory(const Runtime& runtime, const Shape& shape, bool alone);

}  // namespace weft
