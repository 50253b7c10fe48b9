// Computes the model of the split tree: how long a collective on a tree takes, and the program with
// it, if the S levels with the most messages run on the application's cores and the other levels,
// folded, on the cores that carry no rank.
// Denis, Jaeger, Jeannot, Pérache, Taboada, IJHPCA 33(6), 2019, section 6.2, equations 3 to 9;
// equations 4 and 5 are corrected as said at their functions. The unit of time is one transfer of
// the collective's buffer between two cores.
#pragma once

#include <vector>

namespace weft {

struct SplitModel {
  int cores = 1;       // all cores of the node, with and without ranks; at least 1
  int arity = 2;       // arity of the tree; 2: binomial
  bool grows = false;  // gather and scatter: messages of each level are `arity` times as long
  // True if a message starts as soon as it can; false if each level waits for the previous one.
  bool dataflow = false;
  // The time of a message of level i, in units (one transfer of the collective's buffer between two
  // cores). Levels differ for instance between nodes. The last entry holds for all further levels.
  std::vector<double> level_cost = {1};
  // The time of the computation on all cores, in units; 0: as long as the blocking collective on
  // all cores.
  double computation = 0;
};

struct SplitTime {
  double application = 0;    // communication on the application's cores that nothing hides
  double communication = 0;  // communication on the communication cores at the same time
  double computation = 0;
  double total = 0;  // time of the program: application + max(communication, computation)
};

// Returns ⌈log_arity ranks⌉, the number of levels of the tree.
int tree_levels(int ranks, int arity = 2);

// Returns the number of messages of a level, counted from 1: F(N, i) = ⌈N/2^i − 1/2⌉ for N ranks
// and arity 2. Equation 5 of Denis et al. has + 1/2, which counts more messages than the tree has.
int level_messages(int ranks, int level, int arity = 2);

// Returns the time of the blocking collective, in units: equation 3 of Denis et al., or W_H of
// equation 8 if messages grow.
double blocking_time(const SplitModel& model, int ranks);

// Returns the time of the computation by N = `ranks` cores, C(N) = cores / N · C(cores): equation 4
// of Denis et al. with the fraction inverted, since the total work is fixed.
double computation_time(const SplitModel& model, int ranks);

// Returns the times of the collective and the program (equations 7 and 9 of Denis et al.). With
// ranks on all cores every level runs on them, whatever `split` is.
SplitTime split_time(const SplitModel& model, int ranks, int split);

// Returns the number S of the caller's levels for which the program takes the least time; if
// several are equal, the least S, which hides most.
int best_split(const SplitModel& model, int ranks);

// Returns the number of ranks, from 2 to `cores`, for which the program takes the least time at its
// best split.
int best_ranks(const SplitModel& model);

}  // namespace weft
