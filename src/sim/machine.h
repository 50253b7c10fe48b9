// Machine: the simulator's parameters of a machine, which can be measured (tools/sim/calibrate.cc)
// or cited (python/weft/sim/machines).
#pragma once

#include <cstdint>
#include <string>

#include "topo/topology.h"

namespace weft::sim {

enum class Fabric : std::uint8_t { flat, fat_tree, dragonfly };

struct Network {
  double latency_us = 1;     // time of an empty message from one node to another
  double overhead_us = 0.5;  // time of a core for each message sent or received
  double gap_us = 0.1;       // time between two messages of one node
  double bytes_per_us = 10000;
  std::int64_t eager_bytes = 16 * 1024;  // longest message that need not wait for its receive
  // Bytes that a link with a rate limiter (a token bucket) transfers at the higher rate; they are
  // refilled at `bytes_per_us`.
  double burst_bytes = 0;
  double burst_bytes_per_us = 0;  // higher rate; 0: it is no higher than `bytes_per_us`
  // The time in microseconds of each side's core per KiB of a message, as over TCP; 0 for RDMA.
  double send_us_per_kib = 0;
  double recv_us_per_kib = 0;
  // The bytes of a message that are transferred while neither side progresses it, such as those in
  // the kernel's buffers; 0: all of them, by RDMA.
  std::int64_t window_bytes = 0;
  Fabric fabric = Fabric::flat;
  int nodes_per_switch = 16;  // nodes per switch or, in a dragonfly, per group
  // Ratio of a switch's bandwidth to its nodes and that to other switches, in a fat tree.
  double taper = 1;
  int links_per_pair = 1;  // links between two groups, in a dragonfly
};

struct Machine {
  std::string name = "plain";
  int cores = 1;  // cores per node
  int numa_nodes = 1;

  double core_copy = 5000;    // bytes per microsecond copied by one core
  double numa_copy = 50000;   // bytes per microsecond copied by all cores of a NUMA node together
  double core_reduce = 4000;  // bytes of each operand per microsecond reduced by one core
  // Bytes of each operand per microsecond that one core reduces while it also copies the result; 0:
  // as core_reduce.
  double core_reduce_copy = 0;
  // Greatest size of data that are still in cache if one core has written them and another reads
  // them. The rates below hold for such data; 0 if caches make no difference.
  std::int64_t cache_bytes = 0;
  double cache_copy = 5000, cache_reduce = 4000;
  double remote_cost = 1;  // factor by which a copy from another NUMA node takes longer

  double cache_us = 0.1;    // time until another core sees a write
  double poll_us = 0.1;     // time to poll all operations in progress once
  double switch_us = 1.5;   // time to switch between two threads on a core
  double slice_us = 3000;   // time slice of a thread while others want its core
  double wake_us = 5;       // time until a woken thread is ready to run
  double call_us = 0.5;     // duration of a call that starts a collective
  double message_us = 0.3;  // time of a core for each message sent or received within the node

  // Longest message within the node that need not wait for its receive.
  std::int64_t eager_bytes = 8 * 1024;
  // Number of copies of a long message within the node. 1: the receiver copies it from the sender's
  // memory. 2: the sender copies it into shared cells, and the receiver copies it out of them.
  int copies = 1;
  std::int64_t cell_bytes = 64 * 1024;
  int cells = 4;  // number of shared cells from one rank to another

  Network network;

  // Return the cost of copying or reducing `data` bytes, relative to a copy of as many bytes that
  // are not in cache.
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
