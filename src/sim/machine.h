// Machine: the simulator's parameters of a machine, numbers that can be measured
// (tools/sim/calibrate.cc) or cited (python/weft/sim/machines).
#pragma once

#include <cstdint>
#include <string>

#include "topo/topology.h"

namespace weft::sim {

enum class Fabric : std::uint8_t { flat, fat_tree, dragonfly };

struct Network {
  double latency_us = 1;     // from one node to another
  double overhead_us = 0.5;  // of a core, for each message sent or received
  double gap_us = 0.1;       // between two messages of one node
  double bytes_per_us = 10000;
  std::int64_t eager_bytes = 16 * 1024;  // longer ones wait for their receive
  // A link with a rate limiter (a token bucket) passes this many bytes at the higher rate; they are
  // refilled at `bytes_per_us`.
  double burst_bytes = 0;
  double burst_bytes_per_us = 0;  // 0: no higher than `bytes_per_us`
  // The work of each side's core for a message, as over TCP; 0 for RDMA.
  double send_us_per_kib = 0;
  double recv_us_per_kib = 0;
  // The bytes of a message that move while neither side progresses it, such as the kernel's
  // buffers; 0 means all of it, by RDMA.
  std::int64_t window_bytes = 0;
  Fabric fabric = Fabric::flat;
  int nodes_per_switch = 16;  // dragonfly: nodes in a group
  double taper = 1;           // fat tree: how much less leaves a switch than enters it
  int links_per_pair = 1;     // dragonfly: between two groups
};

struct Machine {
  std::string name = "plain";
  int cores = 1;  // of a node
  int numa_nodes = 1;

  double core_copy = 5000;    // bytes per microsecond that one core copies
  double numa_copy = 50000;   // and all cores of a NUMA node together
  double core_reduce = 4000;  // bytes of each operand that one core reduces
  // The rate of a reduction that also copies its result; 0 if that takes no longer.
  double core_reduce_copy = 0;
  // The rates for data up to `cache_bytes`, which caches still hold when one core has written them
  // and another reads them; 0 if caches make no difference.
  std::int64_t cache_bytes = 0;
  double cache_copy = 5000, cache_reduce = 4000;
  double remote_cost = 1;  // how much longer a copy from another NUMA node takes

  double cache_us = 0.1;    // until another core sees what was written
  double poll_us = 0.1;     // one look at everything that is under way
  double switch_us = 1.5;   // from one thread to another on a core
  double slice_us = 3000;   // how long a thread keeps its core while others want it
  double wake_us = 5;       // until a sleeping thread is ready to run
  double call_us = 0.5;     // of a call that starts a collective
  double message_us = 0.3;  // of a core, for each message of the node sent or received

  std::int64_t eager_bytes = 8 * 1024;  // of the node: longer messages wait for their receive
  // 1: the receiver copies a long message out of the sender's memory. 2: the sender copies it into
  // cells that both share, and the receiver out of them.
  int copies = 1;
  std::int64_t cell_bytes = 64 * 1024;
  int cells = 4;  // between two ranks

  Network network;

  // Return the cost of copying or reducing so much data, in plain copies.
  double copies_of_copy(double data) const { return is_cached(data) ? core_copy / cache_copy : 1; }
  double copies_of_reduction(double data, bool copies_result) const {
    if (is_cached(data)) return core_copy / cache_reduce;
    return core_copy / (copies_result && core_reduce_copy > 0 ? core_reduce_copy : core_reduce);
  }
  bool is_cached(double data) const { return data <= static_cast<double>(cache_bytes); }

  // Returns the topology of one node, for placements.
  Topology topology() const {
    Topology result;
    for (int core = 0; core < cores; ++core) {
      result.numa_of_cpu.push_back(
          static_cast<int>(static_cast<std::int64_t>(core) * numa_nodes / cores));
      result.core_of_cpu.push_back(core);
    }
    return result;
  }
};

}  // namespace weft::sim
