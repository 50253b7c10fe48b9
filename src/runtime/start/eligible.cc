#include "runtime/start/eligible.h"

#include <cstdint>

#include "library/handles.h"
#include "library/session_communicators.h"
#include "runtime/call/operator_check.h"
#include "runtime/call/shape.h"
#include "select/selector.h"
#include "transport/mpi/kernels.h"

namespace weft {
namespace {

// Returns whether the MPI library would refuse the overlapping buffers of this call. Persistent
// calls are not checked, since the answer for other calls may not apply to them.
bool is_refused(const PlanRequest& asked) {
  if (asked.use == Use::persistent) return false;
  const auto doubtful = doubtful_alone(asked.call, asked.communicator);
  return doubtful && !library_accepts(*doubtful, asked.use == Use::blocking);
}

Eligible declined(Reason reason) {
  return {.declined = reason};
}

}  // namespace

// Returns whether engine auto may learn about blocking calls of this kind. On a single node a
// comparison with the MPI library is made instead, if all ranks know the size of the call.
bool learns_blocking(const Runtime& runtime, const Communicator& communicator, Kind kind) {
  if (runtime.config.blocking != Config::Blocking::by_rule ||
      engine_for(runtime, communicator) != Engine::automatic)
    return false;
  if (!communicator.on_one_node()) return runtime.learns_by_messages();
  return runtime.learns() && !has_known_blocks(kind) && node_serves(kind);
}

bool in_memory_only(const Runtime& runtime, const Communicator& communicator, Use use, Kind kind) {
  const bool by_rule = runtime.config.blocking == Config::Blocking::by_rule;
  return runtime.in_memory_only() ||
         (use == Use::blocking && by_rule && !learns_blocking(runtime, communicator, kind));
}

Reason outside_memory(const Runtime& runtime) {
  return runtime.in_memory_only() ? Reason::level_kept : Reason::outside_memory;
}

std::optional<Reason> declined_at_once(const Runtime& runtime, const Communicator* communicator,
                                       const Call& call, Use use) {
  if (runtime.native())
    return runtime.config.engine == Engine::native ? Reason::engine_native : Reason::level_kept;
  if (runtime.config.leaves(call.kind)) return Reason::kind_left;
  if (!communicator && is_of_session(call.comm)) return Reason::session;
  if (!communicator)
    return Communicators::own().is_crowded_out(call.comm) ? Reason::crowded : Reason::communicator;
  if (engine_for(runtime, *communicator) == Engine::native) return Reason::engine_native;
  // In calls with arrays of counts, each rank knows only its own part, so that ranks cannot agree
  // on a size class. On a single node they agree on lengths a few calls later. Over several nodes,
  // only neighbourhood calls of one kind form a class.
  const bool learns = use == Use::blocking && learns_blocking(runtime, *communicator, call.kind);
  const bool has_class = has_one_count(call.kind) || is_neighborhood(call.kind);
  if (learns && !has_class && !communicator->on_one_node()) return outside_memory(runtime);
  if (!in_memory_only(runtime, *communicator, use, call.kind)) return std::nullopt;
  const bool possible =
      use != Use::request || (runtime.has_memory_thread() && needs_no_library(call.kind, true));
  const bool served = communicator->on_one_node() && possible && node_serves(call.kind);
  return served ? std::nullopt : std::optional(outside_memory(runtime));
}

Eligible eligible(const PlanRequest& asked) {
  const auto& [runtime, call, communicator, use] = asked;
  if (is_neighborhood(call.kind) && !communicator.neighbors) return declined(Reason::topology);
  if (!arguments_look_right(call, communicator) || is_refused(asked))
    return declined(Reason::arguments);
  Eligible found{.shape = shape_of(call, communicator)};
  const auto agreed = agreed_bytes(found.shape);
  if (agreed == 0 && call.kind != Kind::barrier) return declined(Reason::empty);
  if (agreed > INT32_MAX) return declined(Reason::large);
  found.by_callers = runtime.operators_stay() && reduces(call.kind) && !is_predefined(call.op);
  return found;
}

}  // namespace weft
