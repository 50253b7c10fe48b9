// Machine: the simulator's parameters of a machine. Their values are measured
// (tools/sim/calibrate.cc) or cited (python/weft/sim/machines).
#pragma once

#include <cstdint>
#include <string>

#include "topo/topology.h"

namespace weft::sim {

enum class Fabric : std::uint8_t { flat, fat_tree, dragonfly };

struct Network {
  double latency_us = 1;     // time of an empty message from one node to another, in us
  double overhead_us = 0.5;  // processor time for each message that is sent or received, in us
  double gap_us = 0.1;       // time between the beginnings of two messages from one node, in us
  double bytes_per_us = 10000;
  // Longest message, in bytes, that is sent without waiting for its receive.
  std::int64_t eager_bytes = 16 * 1024;
  // Bytes that a link may transfer at the higher rate `burst_bytes_per_us`, if it has a rate
  // limiter (a token bucket); they are refilled at the rate `bytes_per_us`.
  double burst_bytes = 0;
  double burst_bytes_per_us = 0;  // higher rate of a link with a rate limiter; 0 if it has none
  // Processor time of the sender and of the receiver per KiB of a message, in us, as over TCP; 0
  // for RDMA.
  double send_us_per_kib = 0;
  double recv_us_per_kib = 0;
  // The bytes of a message that are transferred while neither side progresses it, such as those in
  // the kernel's buffers; 0 if all are, as by RDMA.
  std::int64_t window_bytes = 0;
  Fabric fabric = Fabric::flat;
  int nodes_per_switch = 16;  // number of nodes per switch or, in a dragonfly, per group
  // In a fat tree, the ratio of a switch's bandwidth to its nodes and its bandwidth to other
  // switches.
  double taper = 1;
  int links_per_pair = 1;  // in a dragonfly, number of links between two groups
};

struct Machine {
  std::string name = "plain";
  int cores = 1;  // number of cores per node
  int numa_nodes = 1;

  double core_copy = 5000;    // bytes per microsecond copied by one core
  double numa_copy = 50000;   // bytes per us that all cores of a NUMA node together copy
  double core_reduce = 4000;  // bytes of each operand per us that one core reduces
  // Bytes of each operand per us that one core reduces while it also copies the result; 0 if they
  // are as many as core_reduce.
  double core_reduce_copy = 0;
  // Most bytes of data that are still in a cache if one core has written them and another reads
  // them. The two rates below hold for such data. 0 if caches make no difference.
  std::int64_t cache_bytes = 0;
  double cache_copy = 5000, cache_reduce = 4000;
  // Factor by which a copy from another NUMA node takes longer than one from the core's own.
  double remote_cost = 1;

  double cache_us = 0.1;   // time until another core sees a write, in us
  double poll_us = 0.1;    // time to poll all operations in progress once, in us
  double switch_us = 1.5;  // time to switch between two threads on a core, in us
  double slice_us = 3000;  // time slice of a thread while other threads want its core, in us
  double wake_us = 5;      // time until a thread that was woken is ready to run, in us
  double call_us = 0.5;    // duration of a call that starts a collective, in us
  // Processor time for each message within the node that is sent or received, in us.
  double message_us = 0.3;

  // Longest message within the node, in bytes, that is sent without waiting for its receive.
  std::int64_t eager_bytes = 8 * 1024;
  // How often a long message within the node is copied. 1: the receiver copies it from the sender's
  // memory. 2: the sender copies it into shared memory (cells), and the receiver copies it out of
  // there.
  int copies = 1;
  std::int64_t cell_bytes = 64 * 1024;
  int cells = 4;  // number of cells of shared memory from one rank to another

  Network network;

  // Return what it costs to copy or reduce `data` bytes, as a multiple of a copy of as many bytes
  // that are not in cache.
  double copies_of_copy(double data) const { return is_cached(data) ? core_copy / cache_copy : 1; }
  double copies_of_reduction(double data, bool copies_result) const {
    if (is_cached(data)) return core_copy / cache_reduce;
    return core_copy / (copies_result && core_reduce_copy > 0 ? core_reduce_copy : core_reduce);
  }
  bool is_cached(double data) const { return data <= static_cast<double>(cache_bytes); }

  // Returns the topology of one node, from which cores for ranks and threads are chosen.
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
