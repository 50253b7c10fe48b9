// Each link keeps when it is free again.
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

// The end of the message leaves the link then.
double NetworkLinks::pass(Link& link, double ready_us, double duration_us) {
  link.free_us = std::max(link.free_us, ready_us) + duration_us;
  return link.free_us;
}

double NetworkLinks::deliver(int from, int to, double bytes, double ready_us, double* sent_us) {
  const double alone_us = bytes / network_.bytes_per_us;
  double end_us = pass(out_[at(from)], ready_us, network_.gap_us + alone_us);
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
  through(in_[at(to)], network_.bytes_per_us);
  return end_us + network_.latency_us;
}

}  // namespace weft::sim
