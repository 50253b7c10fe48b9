// Implements NodeRing (node_ring.h). A rank works directly behind the previous rank of its NUMA
// domain. In each chunk it signals as often as it adds its operand to a block. With several domains
// whose ranks copy out its result, it signals once more when the sum of its own block over all
// domains is complete. If all ranks copy out, it signals a last time when it has fetched the
// results of other domains that it holds for its own domain.
#include "coll/node_ring.h"

#include <algorithm>
#include <utility>

#include "patterns/ring.h"

namespace weft {
namespace {

std::int64_t longest(const std::vector<std::int64_t>& borders) {
  std::int64_t most = 0;
  for (std::size_t i = 1; i < borders.size(); ++i)
    most = std::max(most, borders[i] - borders[i - 1]);
  return most;
}

}  // namespace

NodeRing::NodeRing(Builder& b, const Domains& domains, std::vector<std::int64_t> borders,
                   Result result)
    : b_(b),
      domains_(domains),
      domain_(domains.of(b.shape().rank)),
      result_(result),
      borders_(std::move(borders)),
      homes_(domains, b.shape().size),
      blocks_(b.shape().size),
      chunks_(NodeChunks::in_step(b, longest(borders_), b.shape().recv.extent,
                                  blocks_ + (domains.count() > 1 ? static_cast<int>(result) : 0),
                                  homes_.most_held())) {}

std::int64_t NodeRing::offset(int block) const {
  const std::int64_t element = borders_[static_cast<std::size_t>(block)] + chunks_.begin();
  return element * b_.shape().recv.extent;
}

std::int64_t NodeRing::length(int block) const {
  const auto i = static_cast<std::size_t>(block);
  return borders_[i + 1] - borders_[i];
}

// Returns the rank that is `distance` ranks after `rank` in the ring of its NUMA domain.
int NodeRing::neighbour(int rank, int distance) const {
  const Domains::Ranks ring = domains_.ranks(domains_.of(rank));
  const int size = static_cast<int>(ring.size());
  return ring[static_cast<std::size_t>(ring_at(domains_.local_rank(rank), distance, size))];
}

// Returns which of the rank's signals in a chunk says that it has added its operand to `block`. A
// rank adds first to the blocks that the previous rank holds, then to those of the rank before
// that, and last to its own.
int NodeRing::nth_signal(int rank, int block) const {
  const DomainHomes::Home& home = homes_.of(block, domains_.of(rank));
  int nth = 1 + home.index;
  for (int at = neighbour(rank, -1); at != home.rank; at = neighbour(at, -1))
    nth += static_cast<int>(homes_.held_by(at).size());
  return nth;
}

void NodeRing::sum_up(Location own) {
  const int rank = b_.shape().rank, ranks = domains_.ranks_on(domain_);
  for (int step = 1; step <= ranks; ++step) add_to_blocks(neighbour(rank, -step), step == 1, own);
  if (domains_.count() > 1) add_other_domains(own);
}

void NodeRing::add_to_blocks(int home, bool is_first, Location own) {
  const int rank = b_.shape().rank, before = neighbour(rank, -1);
  for (const int block : homes_.held_by(home)) {
    const Location input = b_.input() + offset(block), sum = shared(block, domain_);
    const Location into = block == rank ? own : sum;
    if (is_first) {
      b_.copy(input, into, count(block));
    } else {
      chunks_.wait(before, nth_signal(before, block));
      b_.reduce(input, sum, into, count(block));
      if (block == rank && domains_.count() == 1) take_own(own);
    }
    chunks_.signal();
  }
}

void NodeRing::add_other_domains(Location own) {
  const int rank = b_.shape().rank;
  for (int i = 1; i < domains_.count(); ++i) {
    const int domain = ring_at(domain_, i, domains_.count());
    const int last = homes_.of(rank, domain).rank;
    chunks_.wait(last, nth_signal(last, rank));
    b_.reduce(shared(rank, domain), own, count(rank));
  }
  take_own(own);
  if (result_ == Result::own_block) return;
  chunks_.signal();
  if (result_ == Result::for_all) fetch_from_other_domains();
}

// Copies the sum of the rank's own block to the receive buffer if all ranks get the result. This
// directly follows the reduction, so that both run in one pass over the data.
void NodeRing::take_own(Location own) {
  const int rank = b_.shape().rank;
  if (result_ == Result::for_all) b_.copy(own, Location{Buffer::recv, offset(rank)}, count(rank));
}

void NodeRing::fetch_from_other_domains() {
  for (const int block : homes_.held_by(b_.shape().rank)) {
    const int domain = domains_.of(block);
    if (domain == domain_) continue;
    chunks_.wait(block, blocks_ + 1);
    b_.copy(shared(block, domain), shared(block, domain_), count(block));
  }
  chunks_.signal();
}

void NodeRing::copy_out() {
  const Shape& s = b_.shape();
  for (int i = 1; i < s.size; ++i) {
    const int block = ring_at(s.rank, i, s.size);
    if (length(block) == 0 && result_ == Result::for_one) continue;
    const bool is_here = domains_.of(block) == domain_;
    const int complete = blocks_ + (domains_.count() > 1 ? 1 : 0), fetched = blocks_ + 2;
    chunks_.wait(homes_.of(block, domain_).rank, is_here ? complete : fetched);
    b_.copy(shared(block, domain_), Location{Buffer::recv, offset(block)}, count(block));
  }
}

}  // namespace weft
