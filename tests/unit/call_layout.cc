// Counts, displacements and neighbours of the tests' calls, all pseudo-random but always the same.
#include "call_layout.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "schedule/node_edges.h"

namespace weft::test {
namespace {

unsigned scrambled(unsigned a, unsigned b = 0, unsigned c = 0) {
  unsigned x = a * 2654435761u ^ (b + 1) * 2246822519u ^ (c + 1) * 3266489917u;
  x = (x ^ (x >> 15)) * 668265263u;
  return x ^ (x >> 13);
}

bool is_odd(const Call& call, int rank) {
  return call.odd_type != nullptr && rank % 2 == 1;
}
const TestType& type_of(const Call& call, int rank) {
  return is_odd(call, rank) ? *call.odd_type : *call.type;
}
std::int64_t count_of(const Call& call, int rank) {
  return is_odd(call, rank) ? call.odd_count : call.count;
}

// Returns a type with the same payload and other displacements.
const TestType& padded(const TestType& type) {
  static std::map<const TestType*, TestType> all;
  const auto [at, is_new] = all.try_emplace(&type, type);
  TestType& result = at->second;
  if (is_new) {
    result.plain = false;
    result.type.extent += 8;
    for (SimSegment& segment : result.type.segments) segment.offset += 4;
  }
  return result;
}

Layout layout(const TestType& type, std::int64_t count) {
  Layout result = type.type.layout(count);
  result.plain = type.plain;
  return result;
}

bool gives_many_types(Kind kind) {
  return kind == Kind::alltoallw || kind == Kind::neighbor_alltoallw;
}

// Returns whether it is an alltoall of any kind: one block to each destination and one from each
// source.
bool exchanges(Kind kind) {
  return (kind >= Kind::alltoall && kind <= Kind::alltoallw) || kind >= Kind::neighbor_alltoall;
}

bool is_irregular(Kind kind) {
  switch (kind) {
    case Kind::gatherv:
    case Kind::scatterv:
    case Kind::allgatherv:
    case Kind::reduce_scatter:
    case Kind::neighbor_allgatherv:
    case Kind::alltoallv:
    case Kind::alltoallw:
    case Kind::neighbor_alltoallv:
    case Kind::neighbor_alltoallw:
      return true;
    default:
      return false;
  }
}

// Returns the size of a block. It is identified by sender and receiver, and by its number among the
// blocks between these two.
std::int64_t units(const Call& call, int from, int to, int number = 0) {
  const Kind kind = call.kind();
  if (!is_irregular(kind)) return 1;
  if (call.in_place && exchanges(kind) && from > to) std::swap(from, to);
  if (kind == Kind::scatterv || kind == Kind::reduce_scatter) from = 0;
  if (kind == Kind::gatherv || kind == Kind::allgatherv || kind == Kind::neighbor_allgatherv)
    to = 0;
  return scrambled(static_cast<unsigned>(from), static_cast<unsigned>(to),
                   static_cast<unsigned>(number)) %
         4;
}

bool rank_in_place(const Call& call, int rank) {
  const Kind kind = call.kind();
  if (has_root(kind)) return call.in_place && rank == call.root;
  // In a reduction, a rank may have equal buffers without the other ranks knowing it. This counts
  // as in place on this rank.
  const bool one_of_many = reduces(kind) && call.count % 2 == 1 && rank % 3 == 1;
  return call.in_place && !one_of_many;
}

int grid_columns(int size) {
  int columns = 1;
  for (int i = 1; i * i <= size; ++i)
    if (size % i == 0) columns = i;
  return columns;
}

std::vector<int> grid_neighbors(int rank, int size) {
  const int columns = grid_columns(size);
  const int column = rank % columns;
  return {rank >= columns ? rank - columns : -1, rank + columns < size ? rank + columns : -1,
          column > 0 ? rank - 1 : -1, column + 1 < columns ? rank + 1 : -1};
}

std::vector<int> random_destinations(int rank, int size) {
  std::vector<int> all(scrambled(static_cast<unsigned>(rank), 71) % 6);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<int>(scrambled(static_cast<unsigned>(rank), static_cast<unsigned>(i), 5) %
                              static_cast<unsigned>(size));
  return all;
}

std::vector<int> random_sources(int rank, int size) {
  std::vector<int> all;
  for (int from = 0; from < size; ++from)
    for (int to : random_destinations(from, size))
      if (to == rank) all.push_back(from);
  for (std::size_t i = all.size(); i > 1; --i)
    std::swap(all[i - 1],
              all[scrambled(static_cast<unsigned>(i), static_cast<unsigned>(rank)) % i]);
  return all;
}

void set_neighbors(const Call& call, Shape& shape) {
  if (!is_neighborhood(shape.kind)) return;
  const int size = shape.size;
  if (call.graph == Graph::random) {
    shape.destinations = random_destinations(shape.rank, size);
    shape.sources = random_sources(shape.rank, size);
  } else {
    shape.sources = call.graph == Graph::grid
                        ? grid_neighbors(shape.rank, size)
                        : std::vector{(shape.rank + size - 1) % size, (shape.rank + 1) % size};
    shape.destinations = shape.sources;
  }
}

int number_among(const std::vector<int>& peers, int block) {
  return static_cast<int>(std::count(peers.begin(), peers.begin() + block, peers[block]));
}

class Blocks {
 public:
  Blocks(const Call& call, const Shape& shape) : call_(call), shape_(shape) {}

  std::vector<BlockInMemory> given() const {
    const int rank = shape_.rank, size = shape_.size;
    if (is_neighborhood(shape_.kind) && exchanges(shape_.kind))
      return neighbor_blocks(shape_.destinations, true);
    switch (shape_.kind) {
      case Kind::barrier:
        return {};
      case Kind::bcast:
        return rank == shape_.root ? blocks({units(call_, rank, 0)}) : std::vector<BlockInMemory>{};
      case Kind::scatter:
      case Kind::scatterv:
        return rank == shape_.root ? blocks(all_units(size, true)) : std::vector<BlockInMemory>{};
      case Kind::alltoall:
      case Kind::alltoallv:
      case Kind::alltoallw:
      case Kind::reduce_scatter:
      case Kind::reduce_scatter_block:
        return blocks(all_units(size, true));
      default:
        return blocks({units(call_, rank, 0)});
    }
  }

  std::vector<BlockInMemory> taken() const {
    const int rank = shape_.rank, size = shape_.size;
    if (is_neighborhood(shape_.kind)) return neighbor_blocks(shape_.sources, false);
    switch (shape_.kind) {
      case Kind::barrier:
        return {};
      case Kind::gather:
      case Kind::gatherv:
        return rank == shape_.root ? blocks(all_units(size, false)) : std::vector<BlockInMemory>{};
      case Kind::scatter:
      case Kind::scatterv:
        if (shape_.in_place) return {};
        return blocks({units(call_, shape_.root, rank)});
      case Kind::allgather:
      case Kind::allgatherv:
      case Kind::alltoall:
      case Kind::alltoallv:
      case Kind::alltoallw:
        return blocks(all_units(size, false));
      case Kind::reduce:
        return rank == shape_.root ? blocks({1}) : std::vector<BlockInMemory>{};
      case Kind::exscan:
        return rank > 0 ? blocks({1}) : std::vector<BlockInMemory>{};
      default:
        return blocks({units(call_, 0, rank)});
    }
  }

 private:
  std::vector<std::int64_t> all_units(int size, bool outgoing) const {
    std::vector<std::int64_t> all;
    for (int peer = 0; peer < size; ++peer)
      all.push_back(outgoing ? units(call_, shape_.rank, peer) : units(call_, peer, shape_.rank));
    return all;
  }

  std::vector<BlockInMemory> neighbor_blocks(const std::vector<int>& peers, bool outgoing) const {
    std::vector<std::int64_t> all;
    for (int i = 0; i < static_cast<int>(peers.size()); ++i) {
      const int peer = peers[static_cast<std::size_t>(i)];
      const int number = exchanges(shape_.kind) ? number_among(peers, i) : 0;
      all.push_back(outgoing ? units(call_, shape_.rank, peer, number)
                             : units(call_, peer, shape_.rank, number));
    }
    return blocks(all);
  }

  // Regular blocks follow each other. Irregular ones have gaps between them and any order.
  std::vector<BlockInMemory> blocks(const std::vector<std::int64_t>& units) const {
    std::vector<BlockInMemory> result(units.size());
    std::vector<std::size_t> order(units.size());
    std::iota(order.begin(), order.end(), 0u);
    const bool gaps = is_irregular(shape_.kind) && !reduces(shape_.kind) && units.size() > 1;
    if (gaps && shape_.rank % 2 == 0) std::reverse(order.begin(), order.end());
    if (gaps && shape_.rank % 2 == 1) std::rotate(order.begin(), order.begin() + 1, order.end());
    std::int64_t end = 0;
    for (std::size_t i : order) {
      const TestType& type = type_of_block(static_cast<unsigned>(i));
      result[i] = {end, &type, units[i] * count_of(call_, shape_.rank), units[i]};
      end += result[i].count * type.type.extent;
      if (gaps) end += gives_many_types(shape_.kind) ? 13 : type.type.extent;
    }
    return result;
  }

  const TestType& type_of_block(unsigned block) const {
    const TestType& type = type_of(call_, shape_.rank);
    const bool other = scrambled(static_cast<unsigned>(shape_.rank), block, 9) % 2 == 0;
    return gives_many_types(shape_.kind) && other ? padded(type) : type;
  }

  const Call& call_;
  const Shape& shape_;
};

std::vector<Block> described(const std::vector<BlockInMemory>& blocks, Unit unit) {
  std::vector<Block> result;
  for (const BlockInMemory& block : blocks) result.push_back({block.count, block.offset, unit});
  return result;
}

void describe_types(Shape& shape, std::vector<Block>& blocks,
                    const std::vector<BlockInMemory>& in_memory) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto unit = static_cast<std::size_t>(Unit::first_of_many) + shape.types.size();
    blocks[i].unit = static_cast<Unit>(unit);
    shape.types.push_back(layout(*in_memory[i].type, 0));
  }
}

// Describes only what MPI tells this rank of an irregular call.
void describe_blocks(const RankLayout& rank, Shape& shape) {
  switch (shape.kind) {
    case Kind::gatherv:
    case Kind::allgatherv:
    case Kind::reduce_scatter:
    case Kind::neighbor_allgatherv:
      shape.recv_blocks =
          described(shape.kind == Kind::reduce_scatter ? rank.given : rank.taken, Unit::recv);
      break;
    case Kind::scatterv:
      shape.send_blocks = described(rank.given, Unit::send);
      break;
    default:
      if (!shape.in_place) shape.send_blocks = described(rank.given, Unit::send);
      shape.recv_blocks = described(rank.taken, Unit::recv);
  }
  if (!gives_many_types(shape.kind)) return;
  describe_types(shape, shape.send_blocks, rank.given);
  describe_types(shape, shape.recv_blocks, rank.taken);
}

void describe_layouts(const Call& call, const RankLayout& rank, Shape& shape) {
  const Kind kind = shape.kind;
  const Layout all = layout(type_of(call, shape.rank), count_of(call, shape.rank));
  const auto significant = [&](const std::vector<BlockInMemory>& blocks) {
    Layout result = all;
    result.count = blocks.empty() ? 0 : blocks[0].count;
    return blocks.empty() ? Layout{} : result;
  };
  shape.send = shape.recv = all;
  if (reduces(kind) || kind == Kind::bcast) {
    if (kind == Kind::reduce_scatter) {
      std::int64_t total = 0;
      for (const BlockInMemory& block : rank.given) total += block.count;
      shape.send.count = shape.recv.count = total;
    }
    return;
  }
  shape.recv = significant(rank.taken);
  shape.send = rank.given_in_recv ? Layout{} : significant(rank.given);
}

bool is_placed(const Call& call) {
  return call.algorithm != nullptr &&
         (needs_nodes(call.algorithm->needs) || needs_domains(call.algorithm->needs));
}

void set_nodes(const Call& call, Shape& shape) {
  if (!is_placed(call)) return;
  const bool by_domains = needs_domains(call.algorithm->needs);
  auto nodes = std::make_shared<const Nodes>(
      node_of_rank(call.placing, call.size),
      by_domains ? std::vector<int>() : domain_of_rank(call.placing, call.size));
  if (nodes->count() == 1) return;
  if (by_domains) {
    shape.domains = nodes;
  } else if (nodes->some_share()) {
    shape.nodes = nodes;
    shape.has_leaders = call.algorithm->needs == Needs::nodes_leaders && nodes->all_alike();
  }
}

}  // namespace

std::vector<int> node_of_rank(Placing placing, int size) {
  std::vector<int> nodes;
  for (int rank = 0, next = 1, node = 0; rank < size; ++rank) {
    if (placing == Placing::growing && rank == next) next += ++node + 1;
    switch (placing) {
      case Placing::pairs:
      case Placing::threes:
      case Placing::fours:
        nodes.push_back(rank / (2 + static_cast<int>(placing)));
        break;
      case Placing::cyclic_2:
      case Placing::cyclic_3:
        nodes.push_back(rank % (placing == Placing::cyclic_2 ? 2 : 3));
        break;
      case Placing::growing:
        nodes.push_back(node);
        break;
      case Placing::crowded:
        nodes.push_back(std::min(rank, 4));
        break;
      case Placing::sockets:
        nodes.push_back(rank / 4);
        break;
    }
  }
  return nodes;
}

std::vector<int> domain_of_rank(Placing placing, int size) {
  std::vector<int> domains;
  if (placing == Placing::sockets)
    for (int rank = 0; rank < size; ++rank) domains.push_back((rank + 1) % 2);
  return domains;
}

bool has_root(Kind kind) {
  return kind == Kind::reduce || (kind >= Kind::bcast && kind <= Kind::scatterv);
}

bool has_in_place(Kind kind) {
  return kind != Kind::bcast && kind != Kind::barrier && !is_neighborhood(kind);
}

std::string Call::text() const {
  const char* ops[] = {"sum", "max", "affine", "difference"};
  const char* placings[] = {", pairs",    ", threes",  ", fours",   ", cyclic 2",
                            ", cyclic 3", ", growing", ", crowded", ", sockets"};
  const char* graphs[] = {", grid", ", ring", ", random graph"};
  return std::string(kind_name(kind())) + " " + algorithm->name + ", " + std::to_string(size) +
         " ranks, root " + std::to_string(root) + ", " + std::to_string(count) + " " + type->name +
         ", " + ops[static_cast<int>(op)] + (in_place ? ", in place" : "") +
         (is_neighborhood(kind()) ? graphs[static_cast<int>(graph)] : "") +
         (is_placed(*this) ? placings[static_cast<int>(placing)] : "");
}

RankLayout layout_of_rank(const Call& call, int rank) {
  RankLayout result;
  Shape& shape = result.shape;
  shape.kind = call.kind();
  shape.rank = rank;
  shape.size = call.size;
  shape.root = call.root;
  shape.in_place = rank_in_place(call, rank);
  shape.commutative = call.op == Op::sum || call.op == Op::max;
  shape.on_one_node = call.algorithm != nullptr && needs_node(call.algorithm->needs);
  set_nodes(call, shape);
  set_neighbors(call, shape);
  const Blocks blocks(call, shape);
  const bool scatters = shape.kind == Kind::scatter || shape.kind == Kind::scatterv;
  result.given_in_recv = shape.kind == Kind::bcast || (shape.in_place && !scatters);
  result.taken = blocks.taken();
  result.given = blocks.given();
  if (shape.in_place && exchanges(shape.kind)) result.given = result.taken;
  const bool own_block =
      shape.in_place && !scatters && !reduces(shape.kind) && !exchanges(shape.kind);
  if (own_block) result.given = {result.taken[static_cast<std::size_t>(rank)]};
  describe_layouts(call, result, shape);
  if (is_irregular(shape.kind)) describe_blocks(result, shape);
  return result;
}

// Sets Shape::edges as after an earlier call, at which odd ranks have given other amounts.
static void tell_earlier(const Call& call, std::vector<Shape>& shapes) {
  Call earlier = call;
  earlier.count = call.told_count;
  earlier.told_count = -1;
  const std::vector<Shape> before = shapes_of(earlier);
  tell_edges(shapes);
  for (Shape& shape : shapes) {
    if (!shape.edges) return;
    NodeEdges edges = *shape.edges;
    for (std::size_t place = 0; place < edges.ranks.size(); ++place) {
      const NodeEdges::OfRank& told =
          before[static_cast<std::size_t>(shape.rank)].edges->ranks[place];
      NodeEdges::OfRank& own = edges.ranks[place];
      const bool is_odd = rank_here(shape, static_cast<int>(place)) % 2 == 1;
      if (is_odd) own.out = told.out;
      for (std::size_t i = 0; i < own.in.size(); ++i)
        if (own.in[i].peer % 2 == 1) own.in[i] = told.in[i];
    }
    edges.may_have_changed = true;
    shape.edges = std::make_shared<const NodeEdges>(std::move(edges));
  }
}

std::vector<Shape> shapes_of(const Call& call) {
  std::vector<Shape> shapes;
  for (int rank = 0; rank < call.size; ++rank) shapes.push_back(layout_of_rank(call, rank).shape);
  const bool need_edges = call.algorithm && call.algorithm->needs == Needs::nodes_edges;
  if (need_edges && shapes[0].nodes)
    call.told_count < 0 ? tell_edges(shapes) : tell_earlier(call, shapes);
  return shapes;
}

Shape shape_of(const Call& call, int rank) {
  const bool needs_edges = call.algorithm && call.algorithm->needs == Needs::nodes_edges;
  return needs_edges ? shapes_of(call)[static_cast<std::size_t>(rank)]
                     : layout_of_rank(call, rank).shape;
}

}  // namespace weft::test
