// Memory: the copies in progress on each NUMA node. They share the bandwidth of the node's memory
// evenly, and none is faster than a core can copy.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/events.h"

namespace weft::sim {

class Memory {
 public:
  Memory(Events& events, int domains, double core_rate, double domain_rate);

  void begin(int domain, int thread, double bytes, double now_us);
  // Removes a thread's copy, which is interrupted, and returns how many of its bytes are left.
  double withdraw(int domain, int thread, double now_us);
  // Handles a planned event. Returns the thread whose copy has ended; -1 if the event is out of
  // date.
  int ended(int domain, std::uint32_t version, double now_us);

 private:
  // A copy in progress. All copies of a NUMA node progress equally, so Domain::moved counts the
  // bytes that each has copied since the beginning. end: the value of Domain::moved at which the
  // copy ends.
  struct Copy {
    double end;
    int thread;
  };
  struct Domain {
    // Sorted by `end` in descending order, so that the copy that ends first is the last.
    std::vector<Copy> copies;
    double moved = 0;
    double moved_at_us = 0;
    double planned_us = kNever;
    std::uint32_t version = 0;
  };

  double rate(const Domain& domain) const;
  void bring_up(Domain& domain, double now_us) const;
  void plan(int index, double now_us);

  Events& events_;
  std::vector<Domain> domains_;
  const double core_rate_, domain_rate_;
};

}  // namespace weft::sim
