// Looks up algorithms by name, and derives from their table entries whether they can serve a call.
#include "coll/algorithm.h"

#include <array>
#include <utility>

#include "coll/algorithm_table.h"
#include "patterns/doubling.h"

namespace weft {
namespace {

// The approximate number of steps for one chunk of data in shared memory: most algorithms copy or
// reduce it, and signal and wait twice.
constexpr std::int64_t kStepsPerChunk = 5;

}  // namespace

std::span<const Algorithm> algorithms() {
  return kAlgorithms;
}

const Algorithm* find_algorithm(Kind kind, std::string_view name) {
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.kind == kind && name == algorithm.name) return &algorithm;
  }
  return nullptr;
}

const Algorithm& algorithm_of(const Schedule& schedule) {
  return *find_algorithm(schedule.shape.kind, schedule.algorithm);
}

bool needs_node(Needs needs) {
  return needs == Needs::node || needs == Needs::node_commutative || needs == Needs::node_direct ||
         needs_domains(needs);
}

bool needs_domains(Needs needs) {
  return needs == Needs::domains || needs == Needs::domains_commutative;
}

bool needs_nodes(Needs needs) {
  return needs >= Needs::nodes;
}

bool needs_memory(Needs needs) {
  return needs_node(needs) || needs_nodes(needs);
}

bool node_serves(Kind kind) {
  static const auto served = [] {
    std::array<bool, kKinds> kinds{};
    for (const Algorithm& algorithm : kAlgorithms)
      if (needs_node(algorithm.needs)) kinds[static_cast<std::size_t>(algorithm.kind)] = true;
    return kinds;
  }();
  return served[static_cast<std::size_t>(kind)];
}

bool is_direct(const Algorithm& algorithm) {
  return algorithm.needs == Needs::node_direct;
}

namespace {

bool in_memory_of_a_node(const Shape& shape) {
  return shape.on_one_node && (!reduces(shape.kind) || shape.recv.plain);
}

// Returns whether a hierarchical algorithm, which adds the sums of nodes or domains in the order of
// their lowest ranks, reduces in the order of ranks. A commutative operator does not need that
// order.
bool keeps_order(const Shape& shape, const Nodes& nodes) {
  return shape.commutative || nodes.are_in_order();
}

bool in_memory_of_nodes(const Shape& shape) {
  if (!shape.nodes || (reduces(shape.kind) && !shape.recv.plain)) return false;
  return keeps_order(shape, *shape.nodes);
}

}  // namespace

bool applies(const Algorithm& algorithm, const Shape& shape) {
  if (algorithm.kind != shape.kind) return false;
  const bool commutes = shape.commutative || shape.size == 1;
  switch (algorithm.needs) {
    case Needs::nothing:
      return true;
    case Needs::commutative:
      return commutes;
    case Needs::power_of_two:
      return is_power_of_two(shape.size);
    case Needs::node:
    case Needs::node_direct:
      return in_memory_of_a_node(shape);
    case Needs::node_commutative:
      return in_memory_of_a_node(shape) && commutes;
    case Needs::domains:
      return in_memory_of_a_node(shape) && shape.domains && keeps_order(shape, *shape.domains);
    case Needs::domains_commutative:
      return in_memory_of_a_node(shape) && shape.domains && commutes;
    case Needs::nodes:
      return in_memory_of_nodes(shape);
    case Needs::nodes_in_order:
      return in_memory_of_nodes(shape) && shape.nodes->are_in_order();
    case Needs::nodes_leaders:
      return in_memory_of_nodes(shape) && shape.has_leaders;
    case Needs::nodes_edges:
      return in_memory_of_nodes(shape) && shape.edges;
  }
  return false;
}

namespace {

// The number of sends and receives in one round for which any batch of a schedule has space. No
// batch of any algorithm posts more, so a transport that has space for the first batch has space
// for all.
constexpr std::uint32_t kMostPosted = 4;

Schedule build_next(Schedule batch);

// Builds one batch of a schedule: at most `iterations` iterations of its loops, after the first
// `done` ones. steps: the expected number of steps.
Schedule build_batch(const Algorithm& algorithm, Shape shape, std::int32_t done,
                     std::int32_t iterations, const Tuning& tuning, std::size_t steps) {
  Builder builder(std::move(shape), algorithm.name, tuning);
  builder.expect_steps(steps);
  builder.only_iterations(done, iterations);
  algorithm.build(builder);
  Schedule batch = builder.finish();
  if (done == 0 && !builder.leaves_more()) return batch;
  batch.most_posted = std::max(batch.most_posted, kMostPosted);
  if (!builder.leaves_more()) return batch;
  batch.next_batch = build_next;
  batch.iterations = iterations;
  batch.iterations_done = done + iterations;
  // A batch is not compiled (schedule/program.h). A rank may have no message in its first
  // iterations, so that only some ranks would compile theirs.
  batch.program = {};
  // The following batches may send and receive after the first round, so both properties are set.
  batch.sends_after_first_round = batch.receives_after_first_round = true;
  return batch;
}

Schedule build_next(Schedule batch) {
  const Algorithm& algorithm = algorithm_of(batch);
  return build_batch(algorithm, std::move(batch.shape), batch.iterations_done, batch.iterations,
                     batch.tuning, batch.steps.size());
}

}  // namespace

Schedule build(const Algorithm& algorithm, Shape shape, const Tuning& tuning) {
  return build_in_batches(algorithm, std::move(shape), INT32_MAX, tuning);
}

Schedule build_in_batches(const Algorithm& algorithm, Shape shape, std::int32_t iterations,
                          const Tuning& tuning) {
  const bool in_chunks = needs_memory(algorithm.needs) && !is_direct(algorithm);
  const std::int64_t chunks = in_chunks ? local_bytes(shape) / tuning.chunk_bytes : 0;
  return build_batch(algorithm, std::move(shape), 0, iterations, tuning,
                     static_cast<std::size_t>(kStepsPerChunk * chunks));
}

Schedule build_library(Shape shape, StepKind kind) {
  Builder builder(std::move(shape), "library");
  builder.library(kind);
  return builder.finish();
}

}  // namespace weft
