// Algorithm: a collective algorithm, found by collective and name; an entry of algorithms.def. A
// new algorithm needs one file with a build function and one line in algorithms.def.
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
  node,  // all ranks share memory, and reduced data are contiguous without gaps (Layout::plain)
  node_commutative,
  // All ranks share memory, as for `node`, and buffers are visible to all ranks, which is found out
  // at run time.
  node_direct,
  // All ranks share memory, as for `node`, and there are several NUMA domains. If the operator does
  // not commute, the ranks of each domain must be consecutive.
  domains,
  domains_commutative,
  // Some but not all ranks share memory, and reduced data are contiguous without gaps. If the
  // operator does not commute, the ranks of each node must be consecutive.
  nodes,
  nodes_in_order,  // like `nodes`, but the ranks of each node must be consecutive for any operator
  nodes_leaders,   // like `nodes`, but Shape::has_leaders must hold
  nodes_edges,     // like `nodes`, but Shape::edges must be known
};

struct Algorithm {
  Kind kind;
  const char* name;  // name on the command line, such as "recursive-doubling"
  Needs needs;
  const char* source;  // cited paper
  void (*build)(Builder&);
};

std::span<const Algorithm> algorithms();
// Returns the algorithm that built the schedule.
const Algorithm& algorithm_of(const Schedule& schedule);
// Returns the algorithm of this name for the collective; nullptr if there is none.
const Algorithm* find_algorithm(Kind kind, std::string_view name);
bool needs_node(Needs needs);     // true if the memory of one node that has all ranks is needed
bool needs_nodes(Needs needs);    // true if the memory of each of several nodes is needed
bool needs_domains(Needs needs);  // true if several NUMA domains on the one node are needed
bool needs_memory(Needs needs);   // true if any of the above is needed
bool node_serves(Kind kind);      // true if some algorithm uses the node's memory
// Least bytes of a buffer for which ranks use each other's buffers in place. For shorter ones,
// making them visible to other ranks costs more than copies.
inline constexpr std::int64_t kLeastDirect_bytes = 32 * 1024;
// Returns whether the algorithm uses other ranks' buffers in place. It may then turn out at run
// time that they are not visible, so another algorithm must be available for the call.
bool is_direct(const Algorithm& algorithm);
bool applies(const Algorithm& algorithm, const Shape& shape);
Schedule build(const Algorithm& algorithm, Shape shape, const Tuning& tuning = {});
// Builds only the rounds of the first `iterations` iterations (Builder::iterations) if there are
// more. Schedule::next_batch builds the following ones, for executors that run one batch after the
// other.
Schedule build_in_batches(const Algorithm& algorithm, Shape shape, std::int32_t iterations,
                          const Tuning& tuning = {});

// Builds the whole collective as a single call of the MPI library (engines tcc and assist).
Schedule build_library(Shape shape, StepKind kind);

}  // namespace weft
