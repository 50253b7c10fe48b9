// Runs a simulation: visits the ranks one after the other until all have completed, or none can
// continue.
#include "transport/sim/simulation.h"

#include <algorithm>
#include <deque>
#include <map>

#include "transport/sim/leaders.h"
#include "transport/sim/sim_node.h"
#include "transport/sim/sim_transport.h"

namespace weft {
namespace {

struct Runner {
  Runner(SimNetwork& network, SimLeaders& leaders, const SimModel& model, const Schedule& schedule,
         std::span<const SimRank> ranks, const SimOperator& op, const NodeBufferUse& own_turn)
      : turn(own_turn),
        transport(network, leaders, model, 0, schedule, ranks, op, turn),
        execution(schedule, &transport, nullptr, &turn) {}

  NodeBufferUse turn;
  SimTransport transport;
  Execution execution;
  bool done = false;
};

// Advances each rank as far as it can. Returns how many ranks have not completed; an error if none
// has progressed.
Result<int> visit(std::deque<Runner>& runners) {
  int unfinished = 0;
  bool progress = false;
  for (Runner& runner : runners) {
    if (runner.done) continue;
    const Execution& execution = runner.execution;
    const std::uint32_t round = execution.round(), steps = execution.steps_done();
    auto advanced = runner.execution.advance();
    if (!advanced) return advanced.error();
    runner.done = *advanced;
    progress =
        progress || runner.done || execution.round() != round || execution.steps_done() != steps;
    unfinished += runner.done ? 0 : 1;
  }
  if (unfinished > 0 && !progress)
    return Error{"deadlock: " + std::to_string(unfinished) + " ranks wait for what nobody does"};
  return unfinished;
}

}  // namespace

Result<SimOutcome> Simulation::run(std::span<const Schedule> schedules,
                                   std::span<const SimRank> ranks, const SimOperator& op) const {
  const int size = static_cast<int>(schedules.size());
  SimNetwork network(model_, size);
  SimLeaders leaders(model_, op);
  std::map<int, SimNode> nodes;
  std::deque<Runner> runners;
  std::vector<SimRank> with_input(ranks.begin(), ranks.end());
  for (std::size_t rank = 0; rank < with_input.size(); ++rank) {
    SimRank& of = with_input[rank];
    const Location at = outgoing(schedules[rank].shape, 0).at;
    of.input = (at.buffer == Buffer::send ? of.send : of.recv) + at.offset;
  }
  for (int rank = 0; rank < size; ++rank)
    runners.emplace_back(network, leaders, model_, schedules[rank], with_input, op,
                         nodes[node_of(schedules[rank].shape)].turn(schedules[rank]));
  // Each rank first posts its steps. Some rank always does so in the first visit, so its result
  // need not be checked.
  for (Runner& runner : runners) {
    auto advanced = runner.execution.advance();
    if (!advanced) return advanced.error();
    runner.done = *advanced;
  }
  for (;;) {
    auto unfinished = visit(runners);
    if (!unfinished) return unfinished.error();
    if (*unfinished == 0) break;
  }
  SimOutcome outcome{.time_us = 0, .messages = network.messages(), .bytes = network.bytes()};
  for (int rank = 0; rank < size; ++rank)
    outcome.time_us = std::max(outcome.time_us, network.clock_us(rank));
  return outcome;
}

}  // namespace weft
