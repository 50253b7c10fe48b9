// Implements Candidates: lists the algorithms that are measured, each with every chunk size or
// radix that makes a difference.
#include "select/candidates.h"

#include <algorithm>
#include <array>
#include <utility>

#include "coll/algorithm_names.h"
#include "schedule/node_edges.h"
#include "select/selector.h"

namespace weft {
namespace {

// The radices of trees that are measured, the default first: kRadices within a NUMA domain or node,
// kRadicesAcross between domains.
constexpr std::array<int, 4> kRadices = {Tuning{}.radix, 2, 8, Tuning::kAll};
constexpr std::array<int, 3> kRadicesAcross = {Tuning{}.radix_across, 2, 4};

// Returns the most bytes of a call that is measured. A longer call is represented by a shorter one:
// more bytes would tell no more and leave time for fewer repetitions. Between nodes the limit is
// lower, since a byte takes longer.
std::int64_t most_on_trial_bytes(const Shape& shape) {
  return shape.on_one_node ? 1024 * 1024 : 256 * 1024;
}

// Returns `count` reduced in proportion, so that a call of `bytes` bytes gets as short as a
// measured call may be. The result is at least 1 unless `count` is 0, so no block becomes empty.
std::int64_t shortened(const Shape& shape, std::int64_t count, std::int64_t bytes) {
  const std::int64_t most = most_on_trial_bytes(shape);
  if (bytes <= most || count == 0) return count;
  const double part = static_cast<double>(most) / static_cast<double>(bytes);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(count) * part));
}

// Returns the blocks of the shortened call, with counts in elements of `layout`. These elements are
// bytes except in reductions.
std::vector<Block> shortened_blocks(const Shape& shape, const Layout& layout, std::int64_t bytes) {
  std::vector<Block> blocks;
  std::int64_t offset = 0;
  for (const Block& block : shape.recv_blocks) {
    const std::int64_t own_bytes = payload_bytes(shape, {{}, block.count, block.unit});
    blocks.push_back({shortened(shape, own_bytes / layout.size, bytes), offset, Unit::recv});
    offset += blocks.back().count * layout.extent;
  }
  return blocks;
}

// Returns the bytes of one block. They are derived from the size of the whole call, which all ranks
// know; counts may differ between ranks, or be known only at the root.
std::int64_t block_bytes(const Shape& shape) {
  const std::int64_t bytes = *agreed_bytes(shape);
  return shape.kind == Kind::bcast ? bytes : bytes / shape.size;
}

// Returns whether the algorithm is measured. Four kinds are not: algorithms that use other ranks'
// buffers in place are tried before, collectives between leaders need a communicator of their own,
// those with one leader are for agents, which callers do not wait for, and message-based reductions
// in rank order are used only on request.
bool competes(const Algorithm& algorithm, const Shape& shape) {
  if (is_direct(algorithm) || algorithm.needs == Needs::nodes_leaders) return false;
  if (has_one_leader(algorithm)) return false;
  if (!applies(algorithm, shape)) return false;
  return shape.on_one_node ? needs_node(algorithm.needs) : !is_in_order(algorithm);
}

// Returns the radices, but only the first of those that give the same tree for `size` ranks.
template <std::size_t kCount>
std::vector<int> different(const std::array<int, kCount>& radices, int size) {
  std::vector<int> kept;
  const auto effective = [&](int radix) {
    return radix == Tuning::kAll ? size : std::min(radix, size);
  };
  for (const int radix : radices) {
    const auto is_same = [&](int other) { return effective(other) == effective(radix); };
    if (std::none_of(kept.begin(), kept.end(), is_same)) kept.push_back(radix);
  }
  return kept;
}

// Returns whether the algorithm reduces or synchronizes along a tree. Its name in the table of
// algorithms then ends with "-tree".
bool is_tree(const Algorithm& algorithm) {
  return std::string_view(algorithm.name).ends_with("-tree");
}

std::vector<Tuning> tunings_of_tree(const Algorithm& algorithm, const Shape& shape) {
  const Domains domains =
      needs_domains(algorithm.needs) ? *shape.domains : Domains::one(shape.size);
  int most = 0;
  for (int domain = 0; domain < domains.count(); ++domain)
    most = std::max(most, domains.ranks_on(domain));
  std::vector<Tuning> all;
  for (const int across : different(kRadicesAcross, domains.count()))
    for (const int radix : different(kRadices, most))
      all.push_back({.radix = radix, .radix_across = across});
  return all;
}

// Returns the tunings to measure: chunk sizes for long data, radices of trees for short data.
// Neighborhood collectives have nothing to tune.
std::vector<Tuning> tunings_of(const Algorithm& algorithm, const Shape& shape) {
  if (is_neighborhood(shape.kind)) return {Tuning{}};
  const bool is_short =
      *agreed_bytes(shape) <= *std::min_element(kChunkBytes.begin(), kChunkBytes.end());
  if (is_short && is_tree(algorithm)) return tunings_of_tree(algorithm, shape);
  std::vector<Tuning> all;
  for (const std::int64_t chunk_bytes : kChunkBytes) all.push_back({.chunk_bytes = chunk_bytes});
  return all;
}

// Returns a rank that shares its node with others; all ranks get the same one. Only in the schedule
// of such a rank does a chunk size make a difference.
int rank_in_company(const Nodes& nodes) {
  int node = 0;
  while (nodes.ranks_on(node) == 1) ++node;
  return nodes.ranks(node).front();
}

std::vector<Block> in_a_row(const std::vector<Edge>& edges, Unit unit) {
  std::vector<Block> blocks;
  std::int64_t offset = 0;
  for (const Edge& edge : edges) {
    blocks.push_back({edge.bytes, offset, unit});
    offset += edge.bytes;
  }
  return blocks;
}

// Returns the neighborhood collective to measure. Each neighbour has as many bytes as in `shape`,
// and the blocks are plain bytes that lie one after the other.
Shape neighborhood_on_trial(const Shape& shape) {
  const NodeEdges::OfRank own = edges_of(shape);
  Shape trial = shape;
  trial.types.clear();
  trial.send = trial.recv = Layout{};
  trial.send_blocks = in_a_row(own.out, Unit::send);
  trial.recv_blocks = in_a_row(own.in, Unit::recv);
  for (const Edge& edge : own.out) trial.send.count = std::max(trial.send.count, edge.bytes);
  return trial;
}

// Returns the call to measure in place of one whose size no rank knows. The blocks are plain bytes
// that lie one after the other, and both ends shorten a block alike.
Shape irregular_on_trial(const Shape& shape, std::int64_t longest_bytes) {
  NodeEdges::OfRank own = edges_of(shape);
  const auto size = static_cast<std::size_t>(shape.size);
  const auto place = static_cast<std::size_t>(shape.rank);
  const bool gives_all = own.out.size() == size, takes_all = own.in.size() == size;
  Edge kept;  // the rank's block for itself
  if (gives_all || takes_all)
    kept.bytes =
        payload_bytes(shape, takes_all ? incoming(shape, shape.rank) : outgoing(shape, shape.rank));
  if (gives_all) own.out[place] = kept;
  if (takes_all) own.in[place] = kept;
  for (auto* side : {&own.out, &own.in})
    for (Edge& edge : *side) edge.bytes = shortened(shape, edge.bytes, longest_bytes);
  kept.bytes = shortened(shape, kept.bytes, longest_bytes);
  const auto only = [&](const std::vector<Edge>& edges) {
    return edges.empty() ? kept.bytes : edges.front().bytes;
  };
  Shape trial = shape;
  trial.in_place = false;
  trial.types.clear();
  trial.send = trial.recv = Layout{};
  trial.send_blocks = trial.recv_blocks = {};
  if (gives_all)
    trial.send_blocks = in_a_row(own.out, Unit::send);
  else
    trial.send.count = only(own.out);
  if (takes_all)
    trial.recv_blocks = in_a_row(own.in, Unit::recv);
  else
    trial.recv.count = only(own.in);
  return trial;
}

}  // namespace

Shape shape_on_trial(const Shape& shape, std::int64_t longest_bytes) {
  if (is_neighborhood(shape.kind)) return neighborhood_on_trial(shape);
  if (!agreed_bytes(shape)) return irregular_on_trial(shape, longest_bytes);
  Shape trial = shape;
  trial.in_place = false;
  if (shape.kind == Kind::barrier) return trial;
  const bool reduction = reduces(shape.kind);
  const std::int64_t bytes = *agreed_bytes(shape);
  if (!reduction) trial.recv = Layout{};
  if (shape.recv_blocks.empty()) {
    trial.recv.count = shortened(shape, reduction ? shape.recv.count : block_bytes(shape), bytes);
    trial.send = trial.recv;
  } else {
    trial.recv_blocks = shortened_blocks(shape, trial.recv, bytes);
    trial.recv.count = 0;
    for (const Block& block : trial.recv_blocks) trial.recv.count += block.count;
    trial.send = trial.recv;
    if (!reduction)
      trial.send.count = trial.recv_blocks[static_cast<std::size_t>(shape.rank)].count;
  }
  const bool is_root = shape.rank == shape.root;
  if (shape.kind == Kind::gather && !is_root) trial.recv.count = 0;
  if (shape.kind == Kind::scatter && !is_root) trial.send.count = 0;
  return trial;
}

Candidates::Candidates(const Shape& shape, const Candidate& first, bool at_once,
                       std::int32_t iterations)
    : shape_(shape), at_once_(at_once), iterations_(iterations) {
  add(*first.algorithm, first.tuning);
  for (const Algorithm& algorithm : algorithms())
    if (&algorithm != first.algorithm) add(algorithm, first.tuning);
  while (!all_.empty() && !schedule(0)) all_.erase(all_.begin());
}

// Adds the algorithm with each of its tunings. The tuning `first` comes first if it is among them.
void Candidates::add(const Algorithm& algorithm, const Tuning& first) {
  if (!competes(algorithm, shape_)) return;
  std::vector<Tuning> tunings = tunings_of(algorithm, shape_);
  const auto found = std::find(tunings.begin(), tunings.end(), first);
  if (found != tunings.end()) std::rotate(tunings.begin(), found, found + 1);
  for (const Tuning& tuning : tunings) all_.push_back({{&algorithm, tuning}});
}

void Candidates::bring_forward(const Candidate& one) {
  const auto is_it = [&](const One& other) { return other.candidate == one; };
  const auto found = std::find_if(all_.begin(), all_.end(), is_it);
  if (found != all_.end() && found != all_.begin()) std::rotate(all_.begin() + 1, found, found + 1);
}

const Schedule* Candidates::schedule(std::size_t number) {
  One& one = all_[number];
  if (!one.is_built) {
    one.is_built = true;
    const auto& [algorithm, tuning] = one.candidate;
    Schedule built = build_in_batches(*algorithm, shape_, iterations_, tuning);
    const bool is_left_out = at_once_ && !needs_no_later_help(built, false);
    if (!is_left_out && is_new(one.candidate, built)) one.schedule = std::move(built);
  }
  return one.schedule ? &*one.schedule : nullptr;
}

bool Candidates::is_new(const Candidate& candidate, const Schedule& schedule) {
  if (is_neighborhood(shape_.kind)) return true;
  const auto& [algorithm, tuning] = candidate;
  const Looks looks{algorithm, tuning.radix, tuning.radix_across, node_bytes(candidate, schedule)};
  if (std::find(seen_.begin(), seen_.end(), looks) != seen_.end()) return false;
  seen_.push_back(looks);
  return true;
}

std::int64_t Candidates::node_bytes(const Candidate& candidate, const Schedule& schedule) const {
  const auto& [algorithm, tuning] = candidate;
  if (!needs_nodes(algorithm->needs)) return schedule.node_bytes;
  Shape there = shape_;
  there.rank = rank_in_company(*shape_.nodes);
  return build_in_batches(*algorithm, there, iterations_, tuning).node_bytes;
}

// Compares the schedules of two tunings (candidates.h), limited to two iterations: a single
// iteration has too few steps to show a difference, and longer schedules only repeat the first two
// chunks.
bool chunks_differ(const Shape& shape, const Algorithm& algorithm, const Tuning& one,
                   const Tuning& other) {
  constexpr std::int32_t kIterations = 2;
  Shape there = shape;
  if (needs_nodes(algorithm.needs)) there.rank = rank_in_company(*shape.nodes);
  const auto looks = [&](const Tuning& tuning) {
    const Schedule schedule = build_in_batches(algorithm, there, kIterations, tuning);
    return std::pair(schedule.node_bytes, schedule.steps.size());
  };
  return looks(one) != looks(other);
}

bool trial_tells_apart(const Shape& shape, const Candidate& one, const Candidate& other) {
  return one.algorithm != other.algorithm ||
         agreed_bytes(shape).value_or(0) <= most_on_trial_bytes(shape);
}

std::optional<Candidate> find_candidate(const Shape& shape, std::string_view name,
                                        const Tuning& tuning) {
  const Algorithm* algorithm = find_algorithm(shape.kind, name);
  if (!algorithm || !competes(*algorithm, shape)) return std::nullopt;
  const std::vector<Tuning> known = tunings_of(*algorithm, shape);
  if (std::find(known.begin(), known.end(), tuning) == known.end()) return std::nullopt;
  return Candidate{algorithm, tuning};
}

}  // namespace weft
