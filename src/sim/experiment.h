// Experiment: a collective of all ranks, beside computation, on a simulated machine: the library's
// schedules, run by its Execution on threads where its placements put them.
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

// The executor of the collective. blocking: the caller, before it computes. function: the caller,
// before and after the computation. thread: a progress thread meanwhile. tcc: a worker that keeps
// its core while it waits. agent: one thread for all ranks whose threads share a core.
enum class Executor : std::uint8_t { blocking, function, thread, agent, tcc };

struct Setup {
  Machine machine;
  int nodes = 1;
  int ranks = 2;
  const Algorithm* algorithm = nullptr;
  std::int64_t bytes = 1 << 20;  // of the data, or of a block where there are several
  int root = 0;
  Executor executor = Executor::thread;
  PlacementPolicy placement;
  BackOff backoff{BackOff::Kind::yield};
  // Callers take part in a collective while they wait, as Weft's do; otherwise they sleep and leave
  // it to the thread, as MPC's do.
  bool callers_help = true;
  int split = 0;           // levels of a tree that the application's cores carry out
  bool by_levels = false;  // one level of the tree after the other
  double compute_us = 0;   // on each rank
  int calls = 0;           // function: so often the caller looks while it computes
  double noise = 0;        // what takes 1 takes 1 + noise * X, X exponential with mean 1
  std::uint64_t seed = 1;
};

struct Outcome {
  double total_us = 0;          // until the last rank is done
  double communication_us = 0;  // until the collective is over on the last rank
  std::uint64_t events = 0, switches = 0, messages = 0;
  double bytes = 0;                           // in messages
  std::vector<int> rank_cores, thread_cores;  // over all nodes; the latter: none without threads
  std::string note;                           // why threads stay beside their ranks
};

// Each rank has a track "application" and one for its thread.
using Traces = std::deque<Trace>;

// Returns whether the simulator supports the kind: its blocks must all be alike.
bool is_simulated(Kind kind);

// Returns the shape of the call on rank 0, by which an algorithm is chosen. in_memory: ranks of a
// node may use shared memory.
Shape shape_of(Kind kind, int ranks, int nodes, const Machine& machine, std::int64_t bytes,
               int root, bool in_memory);

// An error says what does not fit, or that the ranks wait for each other.
Result<Outcome> simulate(const Setup& setup, const Shape& shape, Traces* traces = nullptr);

}  // namespace weft::sim
