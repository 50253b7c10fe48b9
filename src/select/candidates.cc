// Every algorithm for the node's memory with every size of part, or every radix, that makes a
// difference.
#include "select/candidates.h"

#include <algorithm>
#include <array>
#include <utility>

#include "select/selector.h"

namespace weft {
namespace {

// The default first. Two places of the largest fill what a rank has in the communicator's memory.
constexpr std::array<std::int64_t, 3> kPartBytes = {Tuning{}.part_bytes, 16 * 1024,
                                                    kNodeBytesPerRank / 2};

// Of trees; the defaults first. In a NUMA domain, or in the node; and from domain to domain.
constexpr std::array<int, 4> kRadices = {Tuning{}.radix, 2, 8, Tuning::kAll};
constexpr std::array<int, 3> kRadicesAcross = {Tuning{}.radix_across, 2, 4};

// More of a long call tells no more, and takes time that would be better spent on repetitions.
constexpr std::int64_t kMostOnTrial_bytes = 1024 * 1024;

// As many elements fewer as the whole has too many bytes; no block becomes empty.
std::int64_t shortened(std::int64_t count, std::int64_t bytes) {
  if (bytes <= kMostOnTrial_bytes || count == 0) return count;
  const double part = static_cast<double>(kMostOnTrial_bytes) / static_cast<double>(bytes);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(count) * part));
}

// In elements of `layout`, which are bytes but in reductions.
std::vector<Block> shortened_blocks(const Shape& shape, const Layout& layout, std::int64_t bytes) {
  std::vector<Block> blocks;
  std::int64_t offset = 0;
  for (const Block& block : shape.recv_blocks) {
    const std::int64_t own_bytes = payload_bytes(shape, {{}, block.count, block.unit});
    blocks.push_back({shortened(own_bytes / layout.size, bytes), offset, Unit::recv});
    offset += blocks.back().count * layout.extent;
  }
  return blocks;
}

// Bytes of a block that all ranks know; counts may differ, and may be known at the root only.
std::int64_t block_bytes(const Shape& shape) {
  const std::int64_t bytes = *agreed_bytes(shape);
  return shape.kind == Kind::bcast ? bytes : bytes / shape.size;
}

// Whether all buffers are shared is found out before.
bool copies_in_memory(const Algorithm& algorithm) {
  return needs_node(algorithm.needs) && !is_direct(algorithm);
}

// Those that give different trees of so many.
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

// By the convention of the table.
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

// Long data differ in their parts, and short ones in the trees that they take.
std::vector<Tuning> tunings(const Algorithm& algorithm, const Shape& shape) {
  const bool is_short =
      *agreed_bytes(shape) <= *std::min_element(kPartBytes.begin(), kPartBytes.end());
  if (is_short && is_tree(algorithm)) return tunings_of_tree(algorithm, shape);
  std::vector<Tuning> all;
  for (const std::int64_t part_bytes : kPartBytes) all.push_back({.part_bytes = part_bytes});
  return all;
}

bool is_there(const std::vector<BuiltCandidate>& all, const BuiltCandidate& one) {
  return std::any_of(all.begin(), all.end(), [&](const BuiltCandidate& other) {
    return other.candidate.algorithm == one.candidate.algorithm &&
           other.candidate.tuning.radix == one.candidate.tuning.radix &&
           other.candidate.tuning.radix_across == one.candidate.tuning.radix_across &&
           other.schedule.node_bytes == one.schedule.node_bytes;
  });
}

void add(std::vector<BuiltCandidate>& all, const Shape& shape, const Algorithm& algorithm,
         bool at_once) {
  if (!copies_in_memory(algorithm) || !applies(algorithm, shape)) return;
  for (const Tuning& tuning : tunings(algorithm, shape)) {
    BuiltCandidate one{{&algorithm, tuning}, build(algorithm, shape, tuning)};
    if (at_once && !needs_no_later_help(one.schedule, false)) continue;
    if (!is_there(all, one)) all.push_back(std::move(one));
  }
}

}  // namespace

Shape shape_on_trial(const Shape& shape) {
  Shape trial = shape;
  trial.in_place = false;
  if (shape.kind == Kind::barrier) return trial;
  const bool reduction = reduces(shape.kind);
  const std::int64_t bytes = *agreed_bytes(shape);
  if (!reduction) trial.recv = Layout{};
  if (shape.recv_blocks.empty()) {
    trial.recv.count = shortened(reduction ? shape.recv.count : block_bytes(shape), bytes);
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

std::vector<BuiltCandidate> node_candidates(const Shape& shape, const Algorithm& first,
                                            bool at_once) {
  std::vector<BuiltCandidate> all;
  add(all, shape, first, at_once);
  for (const Algorithm& algorithm : algorithms())
    if (&algorithm != &first) add(all, shape, algorithm, at_once);
  return all;
}

std::optional<Candidate> find_candidate(const Shape& shape, std::string_view name,
                                        const Tuning& tuning) {
  const Algorithm* algorithm = find_algorithm(shape.kind, name);
  if (!algorithm || !copies_in_memory(*algorithm) || !applies(*algorithm, shape))
    return std::nullopt;
  const std::vector<Tuning> known = tunings(*algorithm, shape);
  if (std::find(known.begin(), known.end(), tuning) == known.end()) return std::nullopt;
  return Candidate{algorithm, tuning};
}

}  // namespace weft
