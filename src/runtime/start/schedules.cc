// Builds schedules. If the user has not set how a tree is split between calling threads and the
// progress thread, a cost model decides that.
#include "runtime/start/schedules.h"

#include <cstdlib>
#include <vector>

#include "base/log.h"
#include "coll/algorithm_names.h"
#include "coll/split_tree.h"
#include "runtime/call/device_memory.h"
#include "runtime/call/packed_data.h"
#include "runtime/node/reach.h"
#include "schedule/verify.h"
#include "select/split_rule.h"
#include "transport/mpi/kernels.h"
#include "transport/transport.h"

namespace weft {
namespace {

#ifndef NDEBUG
// Returns whether the shape of one rank determines the shapes of all other ranks.
bool all_ranks_known(Kind kind) {
  const bool one_sided = kind == Kind::gather || kind == Kind::scatter ||
                         kind == Kind::allgatherv || kind == Kind::reduce_scatter;
  return !one_sided && agreed_bytes({.kind = kind}).has_value();
}

void verify_all_ranks(const Algorithm& algorithm, Shape shape, const Tuning& tuning) {
  std::vector<Schedule> schedules;
  for (shape.rank = 0; shape.rank < shape.size; ++shape.rank)
    schedules.push_back(build(algorithm, shape, tuning));
  if (const auto verified = verify(schedules); !verified) {
    say("wrong schedule: " + verified.error().message);
    std::abort();
  }
}
#endif

// Returns the schedule of this rank, which is built piece by piece, `iterations` iterations at a
// time. Debug builds verify the schedules of all ranks together.
Schedule built(const Algorithm& algorithm, const Shape& shape, int iterations,
               const Tuning& tuning = {}) {
#ifndef NDEBUG
  // A direct schedule for data with gaps ends as soon as the ranks have exchanged their buffers'
  // descriptions. It cannot be verified.
  const bool ends_at_once = is_direct(algorithm) && !(shape.send.plain && shape.recv.plain);
  if (all_ranks_known(shape.kind) && !ends_at_once) verify_all_ranks(algorithm, shape, tuning);
#endif
  return build_in_batches(algorithm, shape, iterations, tuning);
}

int split_levels(const Runtime& runtime, const Shape& shape, const Algorithm& algorithm) {
  const int asked = runtime.config.split_levels;
  if (asked != Config::kByModel) return asked;
  const bool is_knomial = algorithm_names::kKnomial.names(algorithm);
  return best_split(runtime.node_cores(), shape, is_knomial ? kKnomialRadix : 2);
}

// Returns the algorithm that uses the other ranks' buffers in place; nullptr if there is none for
// this shape. If the user has requested copies by the kernel, it is used for any size.
const Algorithm* direct_of(const Shape& shape) {
  if (!one_copy() || !one_copy_rule().asked_for || !one_copy_rule().takes(shape))
    return direct_algorithm(shape);
  const Algorithm* algorithm = algorithm_names::kNodeDirect.of(shape.kind);
  return algorithm && applies(*algorithm, shape) ? algorithm : nullptr;
}

// Returns whether the call can be carried out without MPI_THREAD_MULTIPLE: the calling thread alone
// completes it, or the progress thread advances it in shared memory without MPI calls. The result
// is equal on all ranks.
bool can_do_without_level(const Runtime& runtime, const ScheduleResult& found, Use use) {
  const Schedule& schedule = *found.schedule;
  if (schedule.node_bytes == 0) return false;
  if (use == Use::persistent && needs_no_later_help(schedule, false)) return true;
  return use == Use::blocking || (runtime.has_memory_thread() &&
                                  needs_no_library(schedule.shape.kind, found.kernel != nullptr));
}

}  // namespace

ScheduleResult schedule_for(const PlanRequest& asked, const Eligible& eligible,
                            const ChoiceResult& chosen) {
  const auto& [runtime, call, communicator, use] = asked;
  const Shape& shape = eligible.shape;
  const Choice& choice = chosen.choice;
  look_for_devices();
  ScheduleResult found{.engine = choice.engine};
  if (reduces(call.kind)) found.kernel = kernel_for(call.op, call.recvtype);
  const bool packs =
      use != Use::blocking && runtime.in_memory_only() && PackedData::is_needed(shape);
  const Shape& moved = packs ? PackedData::shape_on_bytes(shape) : shape;
  found.schedule = schedule_for(runtime, communicator, moved, choice);
  if (choice.algorithm) found.needs = choice.algorithm->needs;
  if (in_memory_only(runtime, communicator, use, call.kind) &&
      !can_do_without_level(runtime, found, use))
    return {.declined = outside_memory(runtime)};
  if (!chosen.by_rule || use == Use::blocking || !runtime.in_memory_only()) return found;
  found.engine = engine_in_memory(runtime, shape, found.is_alone());
  const bool wins = wins_as_request(runtime.library, shape, runtime.ranks_share_cores());
  if (use == Use::request && !is_named(runtime, communicator, shape) && !wins)
    return {.declined = Reason::rule};
  return found;
}

std::shared_ptr<const Schedule> schedule_for(const Runtime& runtime, Communicator& communicator,
                                             const Shape& shape, const Choice& choice) {
  static const char library_blocking = 0, library_nonblocking = 0;
  if (choice.algorithm)
    return communicator.schedule(shape, schedule_key(choice), [&] {
      Tuning tuning = tuning_of(choice, shape, communicator.processor);
      if (choice.split_levels == Config::kByModel)
        tuning.split_levels = split_levels(runtime, shape, *choice.algorithm);
      return built(*choice.algorithm, shape, runtime.config.iterations_at_a_time, tuning);
    });
  if (choice.engine == Engine::tcc)
    return communicator.schedule(shape, &library_blocking,
                                 [&] { return build_library(shape, StepKind::library_blocking); });
  return communicator.schedule(shape, &library_nonblocking,
                               [&] { return build_library(shape, StepKind::library_nonblocking); });
}

std::shared_ptr<const Schedule> direct_for(Communicator& communicator, const Shape& shape,
                                           const Choice& choice, Kernel kernel) {
  const bool share = communicator.memory && !communicator.memory->sharing().empty();
  const Algorithm* algorithm = share ? direct_of(shape) : nullptr;
  if (!algorithm || choice.algorithm != &default_algorithm(shape)) return nullptr;
  // A direct schedule copies whole blocks, so a variant with chunks would be equal to the variant
  // without them.
  if (choice.chunk_bytes != 0) return nullptr;
  if (reduces(shape.kind) && !kernel) return nullptr;
  return communicator.schedule(shape, algorithm,
                               [&] { return built(*algorithm, shape, INT32_MAX); });
}

}  // namespace weft
