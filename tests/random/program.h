// Program: a random MPI program that is made from its seed alone, and so is the same on all ranks.
// It mixes calls, forms, types, communicators and ways to complete requests, and its results are
// known. A program that fails is identified by its seed and can be reduced to a few of its steps.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "collective.h"

namespace random_programs {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  int below(int limit) { return static_cast<int>(next() % static_cast<std::uint64_t>(limit)); }
  bool once_in(int many) { return below(many) == 0; }

 private:
  std::uint64_t state_;
};

// Indices into a thread's list of communicators.
enum Comm {
  world,
  duplicate,
  reversed,
  halves,
  all_but_last,
  ring,
  grid,
  graph,
  uneven,
  self,
  groups
};
inline constexpr int kComms = groups + 1;
inline constexpr int kThreads = 3;

enum class Action {
  // Starts a collective; persistent ones are initialised here and started again by `restart`.
  collective,
  blocking,  // calls a blocking collective
  message,   // a non-blocking or persistent message to the next rank of the communicator
  exchange,  // a blocking message from rank to rank
  complete,  // waits for or tests some requests in flight, each rank in its own way
  restart,   // starts persistent operations again
  rest,
};

struct Step {
  int number = 0;
  Action action = Action::rest;
  int thread = 0;
  int comm = world;
  conformance::Spec spec;
  conformance::Form form = conformance::Form::nonblocking;
  bool large = false;
  // Whether objects are freed right after the start.
  bool frees_types = false, frees_operator = false, frees_comm = false;
  int starts = 1;
  unsigned salt = 0;
};

struct Limits {
  int largest_count = 1 << 30;
  bool threads = true;
  // Names of what the MPI library itself gets wrong: types, calls, "comm-free", "mixed", "groups",
  // "user-derived" (a user-defined operator on a derived type), "reduced-negative" and
  // "gathered-negative" (types with a negative lower bound in a reduction or gather),
  // "alltoallv-in-place", "alltoallw-in-place", "scattered-derived" (a reduce-scatter of a derived
  // type), "freed-persistent" (types and operators freed during a persistent operation),
  // "testall-persistent" and "waitall-persistent" (these calls with persistent requests among
  // others), "blocking-mixed" (blocking calls whose ranks have different types).
  std::set<std::string> without;
  std::set<int> only;  // numbers of the steps to execute; empty: all
};

std::vector<Step> generate(std::uint64_t seed, const Limits& limits);
// Returns the step as a line of text.
std::string text(const Step& step);

}  // namespace random_programs
