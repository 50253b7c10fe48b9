// Algorithm: an entry of algorithms.def, found by collective and name. A new algorithm is one file
// with a build function and one line in algorithms.def.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "schedule/builder.h"

namespace weft {

enum class Needs : std::uint8_t {
  nothing,
  commutative,   // the operator must commute
  power_of_two,  // the number of ranks must be a power of two
  node,          // all ranks share memory, and what is reduced is plain
  node_commutative,
  node_direct,  // node, and buffers that all ranks can see, which is found out when it runs
  // Requires node and several NUMA domains. If the operator does not commute, the ranks of each
  // domain must be consecutive.
  domains,
  domains_commutative,
  // Requires that some but not all ranks share memory, and that reduced data are plain. If the
  // operator does not commute, the ranks of each node must be consecutive.
  nodes,
  nodes_in_order,  // nodes, and the ranks of each are consecutive whatever the operator
  nodes_leaders,   // nodes, and Shape::has_leaders
};

struct Algorithm {
  Kind kind;
  const char* name;  // "recursive-doubling"
  Needs needs;
  const char* source;  // the paper
  void (*build)(Builder&);
};

std::span<const Algorithm> algorithms();
// Returns the algorithm that has built the schedule.
const Algorithm& algorithm_of(const Schedule& schedule);
const Algorithm* find_algorithm(Kind kind, std::string_view name);  // nullptr: unknown
bool needs_node(Needs needs);                                       // one for all ranks
bool needs_nodes(Needs needs);                                      // several
bool needs_domains(Needs needs);                                    // several on that node
bool needs_memory(Needs needs);                                     // of one node or of several
bool node_serves(Kind kind);  // some algorithm needs the node's memory
// For shorter buffers, showing and finding them costs more than the copies.
inline constexpr std::int64_t kLeastDirect_bytes = 32 * 1024;
// Returns whether the algorithm may find out at run time that it cannot run; another one must then
// be available for the call.
bool is_direct(const Algorithm& algorithm);
bool applies(const Algorithm& algorithm, const Shape& shape);
Schedule build(const Algorithm& algorithm, Shape shape, const Tuning& tuning = {});
// Builds only the rounds of the first `iterations` iterations (Builder::iterations) if there are
// more; Schedule::next_batch builds the following ones, for executors that run them one after the
// other.
Schedule build_in_batches(const Algorithm& algorithm, Shape shape, std::int32_t iterations,
                          const Tuning& tuning = {});

// Builds the whole collective as one step of the MPI library (engines tcc and assist).
Schedule build_library(Shape shape, StepKind kind);

}  // namespace weft
