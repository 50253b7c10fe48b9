// AlgorithmName: the name of an algorithm, with the algorithm that has this name for each
// collective. Rules choose among the constants below; the compiler rejects a constant whose name is
// missing in algorithms.def. Names in options and files are looked up at run time instead
// (find_algorithm).
#pragma once

#include <array>
#include <string_view>

#include "coll/algorithm_table.h"

namespace weft {

class AlgorithmName {
 public:
  consteval explicit AlgorithmName(const char* text) : text_(text) {
    bool is_known = false;
    for (const Algorithm& algorithm : kAlgorithms) {
      if (text != std::string_view(algorithm.name)) continue;
      by_kind_[static_cast<std::size_t>(algorithm.kind)] = &algorithm;
      is_known = true;
    }
    if (!is_known) throw "algorithms.def has no line of this name";
  }
  // Copies are forbidden, since names are compared by address.
  AlgorithmName(const AlgorithmName&) = delete;
  AlgorithmName& operator=(const AlgorithmName&) = delete;

  // Returns the algorithm that has this name for the collective; nullptr if there is none.
  constexpr const Algorithm* of(Kind kind) const {
    return by_kind_[static_cast<std::size_t>(kind)];
  }
  constexpr bool names(const Algorithm& algorithm) const {
    return of(algorithm.kind) == &algorithm;
  }
  constexpr const char* text() const { return text_; }
  bool operator==(const AlgorithmName& other) const { return this == &other; }

 private:
  const char* text_;
  std::array<const Algorithm*, kKinds> by_kind_{};
};

namespace algorithm_names {

inline constexpr AlgorithmName kBinomial("binomial");
inline constexpr AlgorithmName kBruck("bruck");
inline constexpr AlgorithmName kBySize("by-size");
inline constexpr AlgorithmName kChain("chain");
inline constexpr AlgorithmName kCombined("combined");
inline constexpr AlgorithmName kDissemination("dissemination");
inline constexpr AlgorithmName kDomainFlat("domain-flat");
inline constexpr AlgorithmName kDomainRing("domain-ring");
inline constexpr AlgorithmName kDomainTree("domain-tree");
inline constexpr AlgorithmName kHierarchical("hierarchical");
inline constexpr AlgorithmName kHierarchicalInOrder("hierarchical-in-order");
// Algorithms with this name call the MPI library's own collective between the nodes.
inline constexpr AlgorithmName kHierarchicalLibrary("hierarchical-library");
// In the algorithms of this name the first rank of each node sends for all ranks of its node.
inline constexpr AlgorithmName kHierarchicalOneLeader("hierarchical-one-leader");
inline constexpr AlgorithmName kInOrder("in-order");
inline constexpr AlgorithmName kJoined("joined");
inline constexpr AlgorithmName kKnomial("k-nomial");
inline constexpr AlgorithmName kLinear("linear");
inline constexpr AlgorithmName kNodeChain("node-chain");
inline constexpr AlgorithmName kNodeDirect("node-direct");
inline constexpr AlgorithmName kNodeFlat("node-flat");
inline constexpr AlgorithmName kNodeInOrder("node-in-order");
inline constexpr AlgorithmName kNodeRing("node-ring");
inline constexpr AlgorithmName kNodeTree("node-tree");
inline constexpr AlgorithmName kPairwise("pairwise");
inline constexpr AlgorithmName kRabenseifner("rabenseifner");
inline constexpr AlgorithmName kRecursiveDoubling("recursive-doubling");
inline constexpr AlgorithmName kRecursiveHalving("recursive-halving");
inline constexpr AlgorithmName kRing("ring");
inline constexpr AlgorithmName kScatterAllgather("scatter-allgather");

}  // namespace algorithm_names

// Returns whether the algorithm reduces in the order of ranks, so that its results do not depend on
// the placement of ranks.
constexpr bool is_in_order(const Algorithm& algorithm) {
  using namespace algorithm_names;
  return kInOrder.names(algorithm) || kNodeInOrder.names(algorithm) ||
         kHierarchicalInOrder.names(algorithm);
}

// Returns whether the first rank of each node sends for all ranks of its node, so that the other
// ranks need only the node's memory, and a core agent can carry their part out.
constexpr bool has_one_leader(const Algorithm& algorithm) {
  return algorithm_names::kHierarchicalOneLeader.names(algorithm);
}

}  // namespace weft
