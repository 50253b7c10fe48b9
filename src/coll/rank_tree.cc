// Builds the tree of a node's ranks: first a tree in each NUMA domain, then a tree of the domains'
// first ranks.
#include "coll/rank_tree.h"

#include <algorithm>

#include "patterns/tree.h"

namespace weft {
namespace {

// Returns the radix of a tree of `size` ranks: at least 2, and `size` if the given radix sets no
// limit.
int effective(int radix, int size) {
  return radix == Tuning::kAll ? std::max(size, 2) : radix;
}

}  // namespace

RankTree rank_tree(const Domains& domains, int rank, const Tuning& tuning) {
  const int domain = domains.of(rank), local_rank = domains.local_rank(rank);
  const Domains::Ranks here = domains.ranks(domain);
  const int radix = effective(tuning.radix, domains.ranks_on(domain));
  const int radix_across = effective(tuning.radix_across, domains.count());
  const auto first_of = [&](int other) { return domains.ranks(other)[0]; };
  RankTree tree;
  tree.source = here[0];
  for (const int child : knomial_children(local_rank, domains.ranks_on(domain), radix))
    tree.children.push_back(here[static_cast<std::size_t>(child)]);
  if (local_rank > 0) {
    tree.parent = here[static_cast<std::size_t>(knomial_parent(local_rank, radix))];
    return tree;
  }
  for (const int child : knomial_children(domain, domains.count(), radix_across))
    tree.children.push_back(first_of(child));
  if (domain > 0) tree.parent = first_of(knomial_parent(domain, radix_across));
  return tree;
}

}  // namespace weft
