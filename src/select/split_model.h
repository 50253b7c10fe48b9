// The model of the split tree. It computes how long a collective on a tree takes, and the program
// with it, if the S levels with the most messages run on the application's cores and the others,
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
  bool grows = false;  // gather and scatter: each level's messages are `arity` times as long
  // A message starts as soon as it can; otherwise a level waits for the previous one.
  bool dataflow = false;
  // The time of a message of level i, in units, if it differs, such as between nodes. The last
  // entry holds for all further levels.
  std::vector<double> level_cost = {1};
  // The computation on all cores, in units; 0: as long as the blocking collective on all cores.
  double computation = 0;
};

struct SplitTime {
  double application = 0;    // communication on the application's cores that nothing hides
  double communication = 0;  // communication on the communication cores at the same time
  double computation = 0;
  double total = 0;  // application + max(communication, computation)
};

// Returns ⌈log_arity ranks⌉, the number of levels of the tree.
int tree_levels(int ranks, int arity = 2);

// Returns the messages of a level, from 1 to tree_levels: F(N, i) = ⌈N/2^i − 1/2⌉ for arity 2.
// Equation 5 has + 1/2, which counts more messages than the tree has.
int level_messages(int ranks, int level, int arity = 2);

// Returns the time of equation 3, or W_H of equation 8 if messages grow.
double blocking_time(const SplitModel& model, int ranks);

// Returns C(N) = cores / N · C(cores), equation 4 with the fraction inverted: the total work is
// fixed.
double computation_time(const SplitModel& model, int ranks);

// Returns the times of the collective and the program (equations 7 and 9 of Denis et al.). With
// ranks on all cores every level runs on them, whatever `split` is.
SplitTime split_time(const SplitModel& model, int ranks, int split);

// Returns the S with the least total; if several are equal, the least S, which hides most.
int best_split(const SplitModel& model, int ranks);

// Returns the number of ranks, 2 … cores, with the least total at its best split.
int best_ranks(const SplitModel& model);

}  // namespace weft
