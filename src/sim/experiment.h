// Experiment: a collective of all ranks during computation on a simulated machine. It runs the
// library's schedules by its Execution, on threads placed by its placement rules.
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

// The thread that progresses the collective. blocking: the caller, before it computes. function:
// the caller, before and after the computation. thread: a progress thread, during the computation.
// tcc: a worker thread that keeps its core while it waits. agent: one thread for all ranks whose
// threads share a core.
enum class Executor : std::uint8_t { blocking, function, thread, agent, tcc };

struct Setup {
  Machine machine;
  int nodes = 1;
  int ranks = 2;
  const Algorithm* algorithm = nullptr;
  std::int64_t bytes = 1 << 20;  // bytes of the data, or of one block if there are several
  int root = 0;
  Executor executor = Executor::thread;
  PlacementPolicy placement;
  BackOff backoff{BackOff::Kind::yield};
  // True if callers that wait progress the collective, as Weft's do; false if they sleep and leave
  // it to the thread, as MPC's do.
  bool callers_help = true;
  int split = 0;           // number of tree levels that the application's cores carry out
  bool by_levels = false;  // true: each level of the tree waits for the previous one
  double compute_us = 0;   // microseconds of computation on each rank
  int calls = 0;           // with executor function: polls by the caller while it computes
  double noise = 0;  // a duration of 1 becomes 1 + noise * X, where X is exponential with mean 1
  std::uint64_t seed = 1;
};

struct Outcome {
  double total_us = 0;          // time until the last rank is done
  double communication_us = 0;  // time until the collective is complete on the last rank
  std::uint64_t events = 0, switches = 0, messages = 0;
  double bytes = 0;  // number of bytes sent in messages
  // The core of each rank and of its thread, numbered over all nodes; thread_cores is empty without
  // threads.
  std::vector<int> rank_cores, thread_cores;
  std::string note;  // reason why threads share their ranks' cores; "" if they do not
};

// The recorded traces of a run. Each rank has two tracks: "application" and one for its thread.
using Traces = std::deque<Trace>;

// Returns whether the simulator supports this kind of collective, whose blocks must all have equal
// size.
bool is_simulated(Kind kind);

// Returns the shape of the call on rank 0, by which an algorithm is chosen. in_memory: ranks of a
// node may use shared memory.
Shape shape_of(Kind kind, int ranks, int nodes, const Machine& machine, std::int64_t bytes,
               int root, bool in_memory);

// Simulates the experiment. An error says which settings do not fit, or that the ranks deadlock.
Result<Outcome> simulate(const Setup& setup, const Shape& shape, Traces* traces = nullptr);

}  // namespace weft::sim
