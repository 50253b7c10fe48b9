// Algorithm: one line of algorithms.def, looked up by collective and name.
// A new algorithm is one file with a build function and one line in algorithms.def.
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
  // node, of several NUMA domains; where the operator does not commute, the ranks of each domain
  // are consecutive.
  domains,
  domains_commutative,
  // Not all ranks share memory, but some do, and what is reduced is plain; where the operator does
  // not commute, the ranks of each node are consecutive.
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
const Algorithm* find_algorithm(Kind kind, std::string_view name);  // nullptr: unknown
bool needs_node(Needs needs);                                       // one for all ranks
bool needs_nodes(Needs needs);                                      // several
bool needs_domains(Needs needs);                                    // several on that node
bool needs_memory(Needs needs);                                     // of one node or of several
bool node_serves(Kind kind);  // some algorithm needs the node's memory
// Below that, showing and finding buffers costs more than the copies.
inline constexpr std::int64_t kLeastDirect_bytes = 32 * 1024;
// It may find out that it cannot run; so it is never the only one for a call.
bool is_direct(const Algorithm& algorithm);
// The name of those whose part between nodes is the MPI library's own collective.
inline constexpr std::string_view kByLeaders = "hierarchical-library";
bool applies(const Algorithm& algorithm, const Shape& shape);
Schedule build(const Algorithm& algorithm, Shape shape, const Tuning& tuning = {});
// The same, but where it has more laps than that (Builder::laps), only the rounds of the first
// ones: Schedule::next_section makes the others. For whoever carries out one after the other.
Schedule build_in_sections(const Algorithm& algorithm, Shape shape, std::int32_t laps,
                           const Tuning& tuning = {});

// The whole collective as one step of the MPI library (engines tcc and assist).
Schedule build_library(Shape shape, StepKind kind);

}  // namespace weft
