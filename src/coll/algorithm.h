// Algorithm: an entry of the table of collective algorithms (algorithms.def). A new algorithm needs
// one file with a build function and one line in that table.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "schedule/builder.h"

namespace weft {

enum class Needs : std::uint8_t {
  nothing,
  commutative,   // the reduction's operator must commute
  power_of_two,  // the number of ranks must be a power of two
  node,          // All ranks share memory, and the data of reductions have no gaps (Layout::plain).
  node_commutative,
  // All ranks share memory, as for `node`, and can access each other's buffers. Whether they can is
  // found out at run time.
  node_direct,
  // All ranks share memory, as for `node`, and run in several NUMA domains. If the operator does
  // not commute, the ranks of each domain must be consecutive. For domains_commutative it must
  // commute.
  domains,
  domains_commutative,
  // Some but not all ranks share memory, and the data of reductions have no gaps. If the operator
  // does not commute, the ranks of each node must be consecutive.
  nodes,
  nodes_in_order,  // as for `nodes`; the ranks of each node must be consecutive for any operator
  nodes_leaders,   // as for `nodes`; Shape::has_leaders must be true
  nodes_edges,     // as for `nodes`; Shape::edges must be known
};

struct Algorithm {
  Kind kind;
  const char* name;  // name on the command line, such as "recursive-doubling"
  Needs needs;
  const char* source;  // paper that describes the algorithm
  void (*build)(Builder&);
};

std::span<const Algorithm> algorithms();
// Returns the algorithm by which the schedule was built.
const Algorithm& algorithm_of(const Schedule& schedule);
// Returns the algorithm with this name for the collective; nullptr if there is none.
const Algorithm* find_algorithm(Kind kind, std::string_view name);
bool needs_node(Needs needs);     // true if all ranks must share memory
bool needs_nodes(Needs needs);    // true if some but not all ranks must share memory
bool needs_domains(Needs needs);  // true if the ranks must be in several NUMA domains of one node
// True if the algorithm uses shared memory of one or several nodes.
bool needs_memory(Needs needs);
// True if some algorithm of this collective uses memory that all ranks share.
bool node_serves(Kind kind);
// The least bytes of a buffer for which ranks use each other's buffers in place. For shorter ones,
// making the buffers accessible to other processes costs more than copies.
inline constexpr std::int64_t kLeastDirect_bytes = 32 * 1024;
// Returns whether the algorithm uses other ranks' buffers in place. At run time these may turn out
// to be inaccessible, so another algorithm must be available for the call.
bool is_direct(const Algorithm& algorithm);
bool applies(const Algorithm& algorithm, const Shape& shape);
Schedule build(const Algorithm& algorithm, Shape shape, const Tuning& tuning = {});
// Builds a schedule of at most the first `iterations` iterations of the algorithm's loops
// (Builder::iterations). If there are more, Schedule::next_batch builds the following ones, so that
// an executor can run one batch after the other.
Schedule build_in_batches(const Algorithm& algorithm, Shape shape, std::int32_t iterations,
                          const Tuning& tuning = {});

// Builds a schedule with a single step: a call of the MPI library's own collective, blocking or
// non-blocking as `kind` says. Engines tcc and assist use it.
Schedule build_library(Shape shape, StepKind kind);

}  // namespace weft
