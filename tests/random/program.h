// Program: a random MPI program, made from its seed alone and so the same on all ranks.
// Why: whatever users may mix (calls, forms, types, communicators, ways to complete), the results
// are known; a program that fails is named by its seed and can be cut down to a few of its steps.
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

// Places in the list of a thread's communicators.
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
  collective,  // started; persistent ones are made here and started again by `restart`
  blocking,    // a blocking collective
  message,     // a non-blocking or persistent message around the communicator
  exchange,    // a blocking one, from rank to rank
  complete,    // waits for or tests some of what is under way, each rank in its own way
  restart,     // starts persistent operations again
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
  bool frees_types = false, frees_operator = false, frees_comm = false;  // right after the start
  int starts = 1;
  unsigned salt = 0;
};

struct Limits {
  int largest_count = 1 << 30;
  bool threads = true;
  // What the MPI library gets wrong by itself: types, calls, "comm-free", "mixed", "groups",
  // "user-derived" (a user's operator on a derived type), "reduced-negative", "gathered-negative"
  // (types with a negative lower bound in a reduction, in a gather), "alltoallv-in-place",
  // "alltoallw-in-place", "scattered-derived" (a scattered reduction of a derived type),
  // "freed-persistent" (types and operators freed under a persistent operation),
  // "testall-persistent", "waitall-persistent" (these calls, of persistent requests among others),
  // "blocking-mixed" (blocking calls whose ranks have different types).
  std::set<std::string> without;
  std::set<int> only;  // steps; empty: all
};

std::vector<Step> generate(std::uint64_t seed, const Limits& limits);
// The step as a line to read.
std::string text(const Step& step);

}  // namespace random_programs
