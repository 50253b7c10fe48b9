// One collective call of the tests: which blocks each rank gives and gets, where they lie in its
// memory, and the Shape that says so.
// Why apart from outgoing() and incoming(): the tests must not take the places from what they test.
#pragma once

#include <string>
#include <vector>

#include "coll/algorithm.h"
#include "oracle.h"

namespace weft::test {

// Of neighborhoods. A grid has ends, where there is no neighbour; on a ring of one or two ranks
// both neighbours are the same one; in the random graph, ranks come up several times, in any order.
enum class Graph { grid, ring, random };

// Which ranks run on which node, or in which NUMA domain of one: two, three or four on each, the
// rest on the last one; in turn on two or three nodes; alone, two, three, … on a node; most on the
// last of five.
// sockets: fours, on each node in two domains by turns, the lowest rank in the second.
enum class Placing { pairs, threes, fours, cyclic_2, cyclic_3, growing, crowded, sockets };
inline constexpr Placing kPlacings[] = {Placing::pairs,    Placing::threes,   Placing::fours,
                                        Placing::cyclic_2, Placing::cyclic_3, Placing::growing,
                                        Placing::crowded,  Placing::sockets};
std::vector<int> node_of_rank(Placing placing, int size);
std::vector<int> domain_of_rank(Placing placing, int size);  // on its node; empty: no matter

struct Call {
  const Algorithm* algorithm = nullptr;
  int size = 1;
  int root = 0;
  // Elements, of each block where there are several. The blocks of irregular collectives have none
  // to three times as many.
  std::int64_t count = 0;
  bool in_place = false;
  Op op = Op::sum;
  const TestType* type = nullptr;
  // If set, odd ranks use this type instead, with `odd_count` of the same payload.
  const TestType* odd_type = nullptr;
  std::int64_t odd_count = 0;
  Graph graph = Graph::grid;
  Placing placing = Placing::pairs;  // for algorithms that need several nodes or domains
  Tuning tuning = {};

  Kind kind() const { return algorithm->kind; }
  std::string text() const;
};

struct BlockInMemory {
  std::int64_t offset = 0;
  const TestType* type = nullptr;
  std::int64_t count = 0;  // of this type
  std::int64_t units = 0;  // times Call::count elements of Call::type
};

struct RankLayout {
  Shape shape;
  bool given_in_recv = false;
  std::vector<BlockInMemory> given;
  std::vector<BlockInMemory> taken;
};

bool has_root(Kind kind);
bool has_in_place(Kind kind);

// Without Shape::edges, which shapes_of() and shape_of() set if the algorithm needs them.
RankLayout layout_of_rank(const Call& call, int rank);
std::vector<Shape> shapes_of(const Call& call);
Shape shape_of(const Call& call, int rank);

}  // namespace weft::test
