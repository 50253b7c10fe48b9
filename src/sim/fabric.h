// NetworkLinks: the network between nodes: each node's link, and the links inside a fabric of
// limited bandwidth. A message occupies each link on its way, one after the other, for as long as
// its bytes need there. It passes through without being stored, so only the slowest link adds its
// time. (LogGP: Alexandrov, Ionescu, Schauser, Scheiman, SPAA 1995; contention is first come, first
// served.)
#pragma once

#include <deque>
#include <vector>

#include "sim/machine.h"

namespace weft::sim {

class NetworkLinks {
 public:
  NetworkLinks(const Network& network, int nodes);

  // Returns the time of arrival of a message that is ready at `ready_us`. *sent_us: the time at
  // which the sender's link is free again. is_first: whether this is the first piece of a message,
  // or all of it.
  double deliver(int from, int to, double bytes, double ready_us, double* sent_us,
                 bool is_first = true);

 private:
  struct Taken {
    double from_us, to_us;
  };
  struct Link {
    double free_us = 0;
    double used_bytes = 0;    // bytes of the burst in use when the link was last used
    std::deque<Taken> taken;  // occupied intervals, if messages are sent in pieces
  };
  // Returns the duration of a transfer that begins at `begin_us` and has a rate-limited link for
  // itself; it uses up the burst.
  double limited_us(Link& link, double begin_us, double bytes) const;
  double pass(Link& link, double ready_us, double duration_us);
  double fit(Link& link, double ready_us, double duration_us);
  int group(int node) const { return node / network_.nodes_per_switch; }

  const Network& network_;
  int groups_;
  std::vector<Link> out_, in_;             // links from and to nodes
  std::vector<Link> up_, down_, between_;  // links from and to switches, and between groups
};

}  // namespace weft::sim
