// Implements NetworkLinks: computes the times of messages on the links of the network. Each link
// has the time from which on it is free.
#include "sim/fabric.h"

#include <algorithm>
#include <cstddef>

namespace weft::sim {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

NetworkLinks::NetworkLinks(const Network& network, int nodes)
    : network_(network),
      groups_((nodes + network.nodes_per_switch - 1) / network.nodes_per_switch),
      out_(at(nodes)),
      in_(at(nodes)) {
  if (network.fabric == Fabric::fat_tree) {
    up_.resize(at(groups_));
    down_.resize(at(groups_));
  }
  if (network.fabric == Fabric::dragonfly) between_.resize(at(groups_) * at(groups_));
}

// Occupies the link for `duration_us` from the time at which it is free and the message is ready.
// Returns the time at which the end of the message leaves the link.
double NetworkLinks::pass(Link& link, double ready_us, double duration_us) {
  link.free_us = std::max(link.free_us, ready_us) + duration_us;
  return link.free_us;
}

// Occupies the first free interval of the link that is long enough, and returns its end. Pieces of
// messages are planned far ahead, one sender after the other, so that intervals may be free between
// them.
double NetworkLinks::fit(Link& link, double ready_us, double duration_us) {
  constexpr std::size_t kMost = 4096;
  double from_us = ready_us;
  auto at = link.taken.begin();
  for (; at != link.taken.end() && at->from_us - from_us < duration_us; ++at)
    from_us = std::max(from_us, at->to_us);
  link.taken.insert(at, {from_us, from_us + duration_us});
  if (link.taken.size() > kMost) link.taken.pop_front();
  return from_us + duration_us;
}

// Returns the duration of a transfer on a link with a token bucket (fabric.h): bytes go at the
// burst rate while tokens last, and then at the link's rate. Tokens are spent at the difference of
// the two rates.
double NetworkLinks::limited_us(Link& link, double begin_us, double bytes) const {
  const double rate = network_.bytes_per_us;
  const double peak = std::max(rate, network_.burst_bytes_per_us);
  if (network_.burst_bytes <= 0 || peak <= rate) return bytes / rate;
  const double back = std::max(0.0, begin_us - link.free_us) * rate;
  link.used_bytes = std::max(0.0, link.used_bytes - back);
  const double drained =
      std::min(bytes * (1 - rate / peak), network_.burst_bytes - link.used_bytes);
  link.used_bytes += drained;
  const double fast = drained / (1 - rate / peak);
  return fast / peak + (bytes - fast) / rate;
}

double NetworkLinks::deliver(int from, int to, double bytes, double ready_us, double* sent_us,
                             bool is_first) {
  const double gap_us = is_first ? network_.gap_us : 0;
  Link& out = out_[at(from)];
  const double begin_us = std::max(out.free_us, ready_us) + gap_us;
  const double alone_us = limited_us(out, begin_us, bytes);
  double end_us = pass(out, ready_us, gap_us + alone_us);
  *sent_us = end_us;
  const int source = group(from), target = group(to);
  const auto through = [&](Link& link, double rate) {
    end_us = std::max(end_us, pass(link, end_us - alone_us, bytes / rate));
  };
  if (source != target && network_.fabric == Fabric::fat_tree) {
    const double rate = network_.bytes_per_us * network_.nodes_per_switch / network_.taper;
    through(up_[at(source)], rate);
    through(down_[at(target)], rate);
  }
  if (source != target && network_.fabric == Fabric::dragonfly)
    through(between_[at(source) * at(groups_) + at(target)],
            network_.bytes_per_us * network_.links_per_pair);
  Link& in = in_[at(to)];
  const double in_begin_us = std::max(in.free_us, end_us - alone_us);
  if (network_.window_bytes > 0)
    end_us = std::max(end_us, fit(in, end_us - alone_us, alone_us));
  else
    end_us = std::max(end_us, pass(in, in_begin_us, limited_us(in, in_begin_us, bytes)));
  return end_us + network_.latency_us;
}

}  // namespace weft::sim
