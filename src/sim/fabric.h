// The network between nodes: each node's link and, of a fabric that is thinner inside, the links on
// the way. A message takes each of them in turn, for as long as its bytes need there; it goes
// through without being stored, so that the slowest link counts once. (LogGP: Alexandrov, Ionescu,
// Schauser, Scheiman, SPAA 1995; contention as first come, first served.)
#pragma once

#include <deque>
#include <vector>

#include "sim/machine.h"

namespace weft::sim {

class NetworkLinks {
 public:
  NetworkLinks(const Network& network, int nodes);

  // When a message that is ready at `ready_us` has arrived. sent_us: when its sender's link is
  // done. is_first: of a message that comes in pieces.
  double deliver(int from, int to, double bytes, double ready_us, double* sent_us,
                 bool is_first = true);

 private:
  struct Taken {
    double from_us, to_us;
  };
  struct Link {
    double free_us = 0;
    double used_bytes = 0;    // of the burst, when it was last used
    std::deque<Taken> taken;  // where messages come in pieces
  };
  // Returns the duration from `begin_us` on, alone on a rate-limited link; it uses up the burst.
  double limited_us(Link& link, double begin_us, double bytes) const;
  double pass(Link& link, double ready_us, double duration_us);
  double fit(Link& link, double ready_us, double duration_us);
  int group(int node) const { return node / network_.nodes_per_switch; }

  const Network& network_;
  int groups_;
  std::vector<Link> out_, in_;             // of nodes
  std::vector<Link> up_, down_, between_;  // of switches; between groups
};

}  // namespace weft::sim
