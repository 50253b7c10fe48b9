// The simulator's experiments: the library's schedules and placements, stages of trees, links.
#include <gtest/gtest.h>

#include <string>

#include "coll/algorithm_names.h"
#include "sim/experiment.h"
#include "sim/fabric.h"
#include "sim/stages.h"

namespace weft::sim {
namespace {

// Returns a machine on which only copies take time: a microsecond for 1000 bytes.
Machine ideal(int cores) {
  Machine machine;
  machine.cores = cores;
  machine.core_copy = machine.core_reduce = 1000;
  machine.numa_copy = 1e9;
  machine.cache_us = machine.poll_us = machine.switch_us = machine.wake_us = 0;
  machine.call_us = machine.message_us = 0;
  return machine;
}

Setup setup_of(const Machine& machine, Kind kind, const char* algorithm, int ranks) {
  Setup setup;
  setup.machine = machine;
  setup.ranks = ranks;
  setup.bytes = 1 << 20;
  setup.algorithm = find_algorithm(kind, algorithm);
  setup.callers_help = false;
  setup.placement = *parse_placement("numa");
  return setup;
}

Shape shape_of(const Setup& setup, bool in_memory = false) {
  return shape_of(setup.algorithm->kind, setup.ranks, setup.nodes, setup.machine, setup.bytes,
                  setup.root, in_memory);
}

Outcome outcome_of(const Setup& setup, bool in_memory = false) {
  auto outcome = simulate(setup, shape_of(setup, in_memory));
  EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().message);
  return outcome ? *outcome : Outcome{};
}

constexpr double kTransfer_us = (1 << 20) / 1000.0;

TEST(SimExperiment, ATreeOnAllCoresTakesATransferPerLevel) {
  auto setup = setup_of(ideal(16), Kind::bcast, "binomial", 16);
  setup.executor = Executor::blocking;
  EXPECT_NEAR(outcome_of(setup).total_us, 4 * kTransfer_us, 1e-3);
}

// The paper's figure 9: 16 ranks, two cores for communication, 8 + 4 + 2 + 1 messages.
TEST(SimExperiment, AFoldedTreeTakesWhatThePaperCounts) {
  auto setup = setup_of(ideal(18), Kind::bcast, "binomial", 16);
  setup.by_levels = true;
  EXPECT_NEAR(outcome_of(setup).total_us, 8 * kTransfer_us, 1);
}

// The paper's figure 10: two levels on the application's cores, 2 + 1 transfers on the others.
TEST(SimExperiment, ASplitTreeTakesWhatThePaperCounts) {
  auto setup = setup_of(ideal(18), Kind::bcast, "binomial", 16);
  setup.by_levels = true;
  setup.split = 2;
  EXPECT_NEAR(outcome_of(setup).total_us, 4 * kTransfer_us, 1);
  setup.compute_us = 10 * kTransfer_us;
  EXPECT_NEAR(outcome_of(setup).total_us, 12 * kTransfer_us, 1);
}

TEST(SimExperiment, AReductionsFirstStageIsInTheCallThatStartsIt) {
  auto setup = setup_of(ideal(18), Kind::reduce, "binomial", 16);
  setup.split = 2;
  setup.compute_us = 100 * kTransfer_us;
  const double transfer_us = 2 * kTransfer_us;  // the data are moved, then added
  EXPECT_NEAR(outcome_of(setup).total_us, setup.compute_us + 2 * transfer_us, 1);
}

TEST(SimExperiment, AThreadHidesWhatFunctionDoesNot) {
  auto setup = setup_of(ideal(8), Kind::bcast, "binomial", 4);
  setup.compute_us = 5 * kTransfer_us;
  EXPECT_NEAR(outcome_of(setup).total_us, setup.compute_us, 1);
  // The starting call sends the first message; the next ones are sent only in the wait.
  setup.executor = Executor::function;
  EXPECT_NEAR(outcome_of(setup).total_us, setup.compute_us + kTransfer_us, 1);
  setup.executor = Executor::tcc;
  EXPECT_NEAR(outcome_of(setup).total_us, setup.compute_us, 1);
}

// Each node's card moves data that was sent. A rank passes a message on only after it has seen it.
TEST(SimExperiment, ACallerThatLooksWhileItComputesPassesMessagesOn) {
  auto setup = setup_of(ideal(1), Kind::bcast, "binomial", 4);
  setup.nodes = 4;
  Network& network = setup.machine.network;
  network.latency_us = network.overhead_us = network.gap_us = 0;
  network.bytes_per_us = 1000;
  setup.executor = Executor::function;
  setup.compute_us = 5 * kTransfer_us;
  EXPECT_GT(outcome_of(setup).total_us, setup.compute_us + 0.9 * kTransfer_us);
  setup.calls = 100;
  EXPECT_NEAR(outcome_of(setup).total_us, setup.compute_us, 1);
  setup.machine.poll_us = 2;
  // The caller polls during two of the five transfer times, until the last message has arrived.
  EXPECT_NEAR(outcome_of(setup).total_us, setup.compute_us + 2 * 2 * 100 / 5, 20);
  setup.executor = Executor::thread;
  EXPECT_FALSE(simulate(setup, shape_of(setup)));
}

// The thread runs on the core of its rank, and messages cross a slow link.
TEST(SimExperiment, AThreadThatRestsLeavesTheCoreToTheComputation) {
  Machine machine;
  machine.cores = 1;
  machine.network.bytes_per_us = 25;
  auto setup = setup_of(machine, Kind::allreduce, "ring", 2);
  setup.nodes = 2;
  setup.placement = *parse_placement("bind");
  setup.compute_us = 2 * (1 << 20) / 25.0;
  setup.backoff = *parse_backoff("spin");
  const Outcome spins = outcome_of(setup);
  EXPECT_GT(spins.total_us, 1.2 * setup.compute_us);
  for (const char* backoff : {"yield", "sleep:100", "quiet"}) {
    setup.backoff = *parse_backoff(backoff);
    const Outcome rests = outcome_of(setup);
    EXPECT_EQ(rests.messages, spins.messages) << backoff;
    EXPECT_LT(rests.total_us, 1.05 * setup.compute_us) << backoff;
  }
  // This thread is inside a collective of the library, which yields, whatever back-off is set.
  setup.executor = Executor::tcc;
  setup.backoff = *parse_backoff("spin");
  EXPECT_LT(outcome_of(setup).total_us, 1.05 * setup.compute_us);
}

TEST(SimExperiment, EveryAlgorithmEnds) {
  Machine machine;
  machine.cores = 8;
  machine.numa_nodes = 2;
  int simulated = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (!is_simulated(algorithm.kind)) continue;
    for (const int nodes : {1, 2}) {
      for (const int copies : {1, 2}) {
        machine.copies = copies;
        auto setup = setup_of(machine, algorithm.kind, algorithm.name, 8);
        setup.nodes = nodes;
        setup.callers_help = copies == 1;
        setup.bytes = 100000;
        const Shape shape = shape_of(setup, true);
        if (!applies(algorithm, shape) || algorithm_names::kHierarchicalLibrary.names(algorithm))
          continue;
        const auto outcome = simulate(setup, shape);
        ASSERT_TRUE(outcome) << kind_name(algorithm.kind) << " " << algorithm.name << ": "
                             << outcome.error().message;
        ++simulated;
      }
    }
  }
  EXPECT_GT(simulated, 80);
}

TEST(SimExperiment, NoiseDependsOnItsSeedOnly) {
  auto setup = setup_of(Machine{}, Kind::allreduce, "ring", 8);
  setup.machine.cores = 16;
  setup.compute_us = 1000;
  setup.noise = 0.3;
  const double first = outcome_of(setup).total_us;
  EXPECT_EQ(outcome_of(setup).total_us, first);
  EXPECT_EQ(outcome_of(setup).events, outcome_of(setup).events);
  setup.seed = 2;
  EXPECT_NE(outcome_of(setup).total_us, first);
  setup.noise = 0;
  EXPECT_LT(outcome_of(setup).total_us, first);
}

TEST(SimExperiment, WhatCannotBeSimulatedIsSaid) {
  auto setup = setup_of(ideal(8), Kind::allreduce, "ring", 4);
  setup.split = 1;
  EXPECT_FALSE(simulate(setup, shape_of(setup)));
  setup.split = 0;
  setup.ranks = 9;
  EXPECT_FALSE(simulate(setup, shape_of(setup)));
}

TEST(SimStages, LevelsOfATreeAreThoseOfTheModel) {
  EXPECT_EQ(messages_of_levels(16), (std::vector<std::int64_t>{0, 8, 4, 2, 1}));
  EXPECT_EQ(messages_of_levels(23), (std::vector<std::int64_t>{0, 11, 6, 3, 1, 1}));
}

// In a ring, each of two ranks reduces half of the vector and copies the result to its own buffer.
TEST(SimExperiment, AReductionThatCopiesItsResultHasARateOfItsOwn) {
  auto setup = setup_of(ideal(2), Kind::allreduce, "node-ring", 2);
  setup.executor = Executor::blocking;
  const double alike_us = outcome_of(setup, true).total_us;
  EXPECT_NEAR(alike_us, 1.5 * kTransfer_us, 1);
  setup.machine.core_reduce_copy = setup.machine.core_reduce / 2;
  EXPECT_NEAR(outcome_of(setup, true).total_us, 2 * kTransfer_us, 1);
  setup.algorithm = find_algorithm(Kind::allreduce, "node-flat");
  EXPECT_NEAR(outcome_of(setup, true).total_us, 2 * kTransfer_us, 1);
  setup.machine.core_reduce_copy = 0;
  EXPECT_NEAR(outcome_of(setup, true).total_us, 2 * kTransfer_us, 1);
}

TEST(SimFabric, ThinnerFabricsDelayWhatCrossesThem) {
  Network network{.latency_us = 1, .gap_us = 0, .bytes_per_us = 100};
  network.nodes_per_switch = 2;
  network.taper = 2;
  // Two nodes of one switch send to two of another at the same time.
  const auto last = [&](Fabric fabric) {
    network.fabric = fabric;
    NetworkLinks links(network, 4);
    double sent_us = 0;
    links.deliver(0, 2, 1000, 0, &sent_us);
    return links.deliver(1, 3, 1000, 0, &sent_us);
  };
  EXPECT_DOUBLE_EQ(last(Fabric::flat), 11);
  EXPECT_DOUBLE_EQ(last(Fabric::fat_tree), 21);
  EXPECT_DOUBLE_EQ(last(Fabric::dragonfly), 21);
}

TEST(SimFabric, ALinkTakesOneMessageAfterTheOther) {
  const Network network{.latency_us = 1, .gap_us = 0.5, .bytes_per_us = 100};
  NetworkLinks links(network, 3);
  double sent_us = 0;
  EXPECT_DOUBLE_EQ(links.deliver(0, 1, 1000, 0, &sent_us), 11.5);
  EXPECT_DOUBLE_EQ(links.deliver(0, 2, 1000, 0, &sent_us), 22);
  EXPECT_DOUBLE_EQ(sent_us, 21);
}

// A message of no bytes takes its latency, over TCP as well.
TEST(SimExperiment, ABarrierTakesAsLongAsItsMessages) {
  Machine machine;
  machine.network.latency_us = 1000;
  auto setup = setup_of(machine, Kind::barrier, "dissemination", 4);
  setup.nodes = 4;
  setup.bytes = 0;
  EXPECT_GT(outcome_of(setup).total_us, 2000);
  setup.machine.network.window_bytes = 1 << 16;
  EXPECT_GT(outcome_of(setup).total_us, 2000);
}

// Puts four threads on each free core, and lets the ranks compute.
Setup setup_of_packed_threads() {
  Machine machine;
  machine.cores = 10;
  auto setup = setup_of(machine, Kind::allreduce, "ring", 8);
  setup.placement = *parse_placement("pack:4");
  setup.compute_us = 5000;
  return setup;
}

TEST(SimExperiment, AnAgentGoesOnForAllWhoseThreadsShareACore) {
  auto setup = setup_of_packed_threads();
  const Outcome by_threads = outcome_of(setup);
  setup.executor = Executor::agent;
  const Outcome by_agents = outcome_of(setup);
  EXPECT_EQ(by_agents.messages, by_threads.messages);
  EXPECT_LT(by_agents.total_us, 5100);
  EXPECT_LT(by_agents.switches, by_threads.switches);
  // If each thread has a core of its own, an agent serves one rank only.
  setup.machine.cores = 16;
  setup.placement = *parse_placement("pack:1");
  setup.backoff = *parse_backoff("sleep:20");
  const double alone_us = outcome_of(setup).communication_us;
  setup.executor = Executor::thread;
  EXPECT_NEAR(alone_us, outcome_of(setup).communication_us, 0.05 * alone_us);
}

TEST(SimFabric, ABurstPassesAtItsOwnRateAndComesBack) {
  const Network network{.latency_us = 1,
                        .gap_us = 0,
                        .bytes_per_us = 100,
                        .burst_bytes = 1000,
                        .burst_bytes_per_us = 200};
  NetworkLinks links(network, 2);
  double sent_us = 0;
  // The bucket drains by half of what passes: 2000 bytes are fast, the next 1000 are not.
  EXPECT_DOUBLE_EQ(links.deliver(0, 1, 3000, 0, &sent_us), 10 + 10 + 1);
  EXPECT_DOUBLE_EQ(links.deliver(0, 1, 1000, 20, &sent_us), 20 + 10 + 1);
  EXPECT_DOUBLE_EQ(links.deliver(0, 1, 3000, 130, &sent_us), 130 + 20 + 1);
}

TEST(SimFabric, PiecesPlannedAheadLeaveRoomForOthers) {
  Network network{.latency_us = 0, .gap_us = 0, .bytes_per_us = 100};
  network.window_bytes = 1 << 20;
  NetworkLinks links(network, 3);
  double sent_us = 0;
  links.deliver(0, 1, 1000, 0, &sent_us);
  EXPECT_DOUBLE_EQ(links.deliver(0, 2, 1000, 0, &sent_us), 20);
  EXPECT_DOUBLE_EQ(links.deliver(1, 2, 1000, 0, &sent_us), 10);
  EXPECT_DOUBLE_EQ(links.deliver(1, 2, 1000, 0, &sent_us), 30);
}

// Two nodes with one core each. A message of 1 MiB takes as long as a copy.
Setup setup_of_two_nodes() {
  Machine machine = ideal(1);
  machine.network = {.latency_us = 0, .overhead_us = 0, .gap_us = 0, .bytes_per_us = 1000};
  auto setup = setup_of(machine, Kind::bcast, "binomial", 2);
  setup.nodes = 2;
  setup.callers_help = true;
  setup.placement = {};
  return setup;
}

TEST(SimExperiment, OneRankOnEachNodeTakesWhatTheLibraryTakes) {
  const Machine machine = ideal(2);
  const Shape alone = shape_of(Kind::allreduce, 4, 4, machine, 1 << 20, 0, true);
  EXPECT_EQ(alone.nodes, nullptr);
  const Shape shared = shape_of(Kind::allreduce, 4, 2, machine, 1 << 20, 0, true);
  EXPECT_NE(shared.nodes, nullptr);
}

TEST(SimMessages, CoresWorkForWhatGoesOverTcp) {
  auto setup = setup_of_two_nodes();
  setup.executor = Executor::blocking;
  EXPECT_NEAR(outcome_of(setup).total_us, kTransfer_us, 0.5);
  setup.machine.network.window_bytes = 1 << 20;
  EXPECT_NEAR(outcome_of(setup).total_us, kTransfer_us, 0.5);
  // Only the last piece is processed after the transfer; for the earlier ones there was time
  // before.
  setup.machine.network.recv_us_per_kib = 0.5;
  EXPECT_NEAR(outcome_of(setup).total_us, kTransfer_us + 64 * 0.5, 0.5);
  setup.machine.network.recv_us_per_kib = 2;
  EXPECT_GT(outcome_of(setup).total_us, 2 * kTransfer_us);
  setup.machine.network.recv_us_per_kib = 0;
  setup.compute_us = 1000;
  const double without_us = outcome_of(setup).total_us;
  setup.machine.network.recv_us_per_kib = 0.5;
  EXPECT_GT(outcome_of(setup).total_us, without_us);
}

TEST(SimMessages, WithoutALookNoMoreMovesThanBuffersHold) {
  auto setup = setup_of_two_nodes();
  setup.executor = Executor::function;
  setup.compute_us = 5 * kTransfer_us;
  EXPECT_NEAR(outcome_of(setup).total_us, setup.compute_us, 1);
  // A sender that asks first is answered at the receiver's next look, after the computation.
  setup.machine.network.window_bytes = 1 << 18;
  EXPECT_NEAR(outcome_of(setup).total_us, setup.compute_us + kTransfer_us, 1);
  // A message that does not ask fills the buffers meanwhile.
  setup.machine.network.eager_bytes = 1 << 20;
  EXPECT_NEAR(outcome_of(setup).total_us, setup.compute_us + 0.75 * kTransfer_us, 1);
}

}  // namespace
}  // namespace weft::sim
