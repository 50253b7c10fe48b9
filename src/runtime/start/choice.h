// The second of four steps from a call to its plan (plans.h). It chooses the engine and algorithm
// by the fixed rule, or finds out that engine auto learns about such calls.
#pragma once

#include <optional>

#include "runtime/adaptive/calls_by_length.h"
#include "runtime/start/eligible.h"
#include "select/selector.h"

namespace weft {

struct ChoiceResult {
  std::optional<Reason> declined{};
  Choice choice{};
  // If true, for calls on a single node the fixed rule still decides about the engine, and whether
  // the MPI library carries the call out. False if the choice comes from measurements.
  bool by_rule = true;
  // Either is set if engine auto learns about such calls. The choice then differs from call to
  // call. by_length: calls whose size no rank knows, on a single node.
  CallClass* call_class = nullptr;
  CallsByLength* by_length = nullptr;

  bool is_learnt() const { return call_class || by_length; }
};

// Chooses engine and algorithm by facts that are equal on all ranks.
ChoiceResult chosen_for(const PlanRequest& asked, const Eligible& eligible);
// Returns the engine and algorithm of a call about which engine auto learns. variant: the index of
// what the call takes among the variants of its call class.
ChoiceResult chosen_at(const PlanRequest& asked, const Eligible& eligible,
                       const CallClass& call_class, int variant);

// Returns whether the user has named one of Weft's algorithms for this kind. A named algorithm must
// be used even where the MPI library's collective is faster.
bool is_named(const Runtime& runtime, const Communicator& communicator, const Shape& shape);
// Chooses the engine that advances a collective in shared memory while the application computes. A
// progress thread costs more time than it saves if the collective is short, or if no core is free.
// alone: whether the progress thread can advance it without MPI calls.
Engine engine_in_memory(const Runtime& runtime, const Shape& shape, bool alone);

}  // namespace weft
