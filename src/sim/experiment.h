// Experiment: a collective of all ranks that overlaps with computation, on a simulated machine.
// Weft's own code runs the schedules (Execution) and places the threads (topo/placement.h).
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/config.h"
#include "coll/algorithm.h"
#include "sim/machine.h"
#include "trace/trace.h"

namespace weft::sim {

// Says which thread progresses the collective. blocking: the caller, before it computes. function:
// the caller, before and after the computation. thread: a progress thread, during the computation.
// tcc: a worker thread that keeps its core while it waits. agent: one thread for all ranks whose
// threads share a core.
enum class Executor : std::uint8_t { blocking, function, thread, agent, tcc };

struct Setup {
  Machine machine;
  int nodes = 1;
  int ranks = 2;
  const Algorithm* algorithm = nullptr;
  std::int64_t bytes = 1 << 20;  // bytes of the data, or of one block if each rank has a block
  int root = 0;
  Executor executor = Executor::thread;
  PlacementPolicy placement;
  BackOff backoff{BackOff::Kind::yield};
  // True if callers that wait progress the collective, as Weft's do; false if they sleep and leave
  // it to the thread, as those of the MPC library do.
  bool callers_help = true;
  // Number of tree levels, counted from the leaves, that the application's cores carry out.
  int split = 0;
  // Whether each level of the tree waits until the previous one is complete.
  bool by_levels = false;
  double compute_us = 0;  // microseconds of computation on each rank
  int calls = 0;          // number of polls by the caller while it computes (executor function)
  // A duration t becomes t * (1 + noise * X), where X is exponentially distributed with mean 1.
  double noise = 0;
  std::uint64_t seed = 1;
};

struct Outcome {
  // Time in us until the last rank has completed the collective and its computation.
  double total_us = 0;
  double communication_us = 0;  // time in us until the collective is complete on all ranks
  std::uint64_t events = 0, switches = 0, messages = 0;
  double bytes = 0;  // bytes of all messages together
  // The core of each rank and of its thread, numbered over all nodes. thread_cores is empty if
  // there are no threads.
  std::vector<int> rank_cores, thread_cores;
  std::string note;  // why threads share their ranks' cores; "" if they do not
};

// The traces of a run, one per rank. Each has two tracks: "application" and one for the rank's
// thread.
using Traces = std::deque<Trace>;

// Returns whether the simulator supports this kind of collective. It supports those in which all
// blocks have equal size.
bool is_simulated(Kind kind);

// Returns the arguments of the call on rank 0, from which an algorithm is chosen. in_memory:
// whether ranks of a node may use shared memory.
Shape shape_of(Kind kind, int ranks, int nodes, const Machine& machine, std::int64_t bytes,
               int root, bool in_memory);

// Simulates the experiment, and records traces if `traces` is given. Returns an error if settings
// do not fit together, or if the ranks deadlock.
Result<Outcome> simulate(const Setup& setup, const Shape& shape, Traces* traces = nullptr);

}  // namespace weft::sim
