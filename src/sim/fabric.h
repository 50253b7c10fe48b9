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

  // Sends a message that is ready at `ready_us`, and returns the time at which it arrives.
  // *sent_us: gets the time at which the sender's link is free again. is_first: whether this is the
  // first piece of a message, or all of it.
  double deliver(int from, int to, double bytes, double ready_us, double* sent_us,
                 bool is_first = true);

 private:
  struct Taken {
    double from_us, to_us;
  };
  struct Link {
    double free_us = 0;
    // Tokens of the link's token bucket that were spent when the link was last used, in bytes.
    double used_bytes = 0;
    std::deque<Taken> taken;  // occupied intervals of time, if messages are sent in pieces
  };
  // Returns the duration of a transfer that begins at `begin_us`, and spends the tokens that it
  // needs. The link has a token bucket and no other message at that time.
  double limited_us(Link& link, double begin_us, double bytes) const;
  double pass(Link& link, double ready_us, double duration_us);
  double fit(Link& link, double ready_us, double duration_us);
  int group(int node) const { return node / network_.nodes_per_switch; }

  const Network& network_;
  int groups_;
  std::vector<Link> out_, in_;  // links from nodes and links to nodes, indexed by node
  // Links from and to switches, and between two groups of switches.
  std::vector<Link> up_, down_, between_;
};

}  // namespace weft::sim
