// A collective call of the tests: which blocks each rank sends and receives, where they lie in its
// memory, and the Shape that describes this. It does not use outgoing() and incoming(), which the
// tests check.
#pragma once

#include <string>
#include <vector>

#include "coll/algorithm.h"
#include "oracle.h"

namespace weft::test {

// Kinds of neighbourhoods. At the border of a grid there is no neighbour. On a ring of one or two
// ranks, both neighbours are the same rank. In the random graph, ranks may occur several times, in
// any order.
enum class Graph { grid, ring, random };

// Which ranks run on which node, or in which NUMA domain of one node. pairs, threes, fours: as many
// consecutive ranks on each node, the rest on the last one. cyclic: in turn on two or three nodes.
// growing: 1, 2, 3, … ranks on a node. crowded: most ranks on the last of five nodes. sockets: four
// ranks on each node, alternately in two domains, the lowest rank in the second.
enum class Placing { pairs, threes, fours, cyclic_2, cyclic_3, growing, crowded, sockets };
inline constexpr Placing kPlacings[] = {Placing::pairs,    Placing::threes,   Placing::fours,
                                        Placing::cyclic_2, Placing::cyclic_3, Placing::growing,
                                        Placing::crowded,  Placing::sockets};
std::vector<int> node_of_rank(Placing placing, int size);
// Domain of each rank within its node; empty if domains do not matter.
std::vector<int> domain_of_rank(Placing placing, int size);

struct Call {
  const Algorithm* algorithm = nullptr;
  int size = 1;
  int root = 0;
  // Number of elements; in each block, if there are several blocks. Blocks of irregular collectives
  // have between none and three times as many.
  std::int64_t count = 0;
  bool in_place = false;
  Op op = Op::sum;
  const TestType* type = nullptr;
  // If set, odd ranks use this type, with `odd_count` elements that have the same payload.
  const TestType* odd_type = nullptr;
  std::int64_t odd_count = 0;
  Graph graph = Graph::grid;
  Placing placing = Placing::pairs;  // for algorithms that need several nodes or domains
  Tuning tuning = {};
  // If not negative, `count` at the earlier call at which the ranks of each node have told each
  // other what odd ranks give (Shape::edges).
  std::int64_t told_count = -1;

  Kind kind() const { return algorithm->kind; }
  std::string text() const;
};

struct BlockInMemory {
  std::int64_t offset = 0;
  const TestType* type = nullptr;
  std::int64_t count = 0;  // number of elements of this type
  std::int64_t units = 0;  // size as a multiple of Call::count elements of Call::type
};

struct RankLayout {
  Shape shape;
  bool given_in_recv = false;
  std::vector<BlockInMemory> given;
  std::vector<BlockInMemory> taken;
};

bool has_root(Kind kind);
bool has_in_place(Kind kind);

// Leaves Shape::edges empty. shapes_of() and shape_of() set it if the algorithm needs it.
RankLayout layout_of_rank(const Call& call, int rank);
std::vector<Shape> shapes_of(const Call& call);
Shape shape_of(const Call& call, int rank);

}  // namespace weft::test
