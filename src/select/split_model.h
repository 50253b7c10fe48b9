// The model of the split tree: how long a collective on a tree takes, and the program with it, if
// the S levels with the most messages run on the application's cores and the others, folded, on the
// cores that carry no rank. Denis, Jaeger, Jeannot, Pérache, Taboada, IJHPCA 33(6), 2019,
// section 6.2, equations 3 to 9; equations 4 and 5 are corrected as said at their functions. The
// unit of time is one transfer of the collective's buffer between two cores.
#pragma once

#include <vector>

namespace weft {

struct SplitModel {
  int cores = 1;          // of the node, those with ranks and those without; at least 1
  int arity = 2;          // of the tree; 2: binomial
  bool grows = false;     // gather, scatter: each level's messages are `arity` times as long
  bool dataflow = false;  // a message goes as soon as it can; else a level waits for the one before
  // The time of a message of level i, in units, where that differs, such as between nodes; the last
  // one holds for all further levels.
  std::vector<double> level_cost = {1};
  // The computation on all cores, in units; 0: as long as the blocking collective there.
  double computation = 0;
};

struct SplitTime {
  double application = 0;    // communication that nothing hides, on the application's cores
  double communication = 0;  // what the communication cores do meanwhile
  double computation = 0;
  double total = 0;  // application + max(communication, computation)
};

// ⌈log_arity ranks⌉: the levels of the tree.
int tree_levels(int ranks, int arity = 2);

// Messages of level 1 … tree_levels: F(N, i) = ⌈N/2^i − 1/2⌉ for arity 2. Equation 5 has + 1/2,
// which counts more messages than the tree has.
int level_messages(int ranks, int level, int arity = 2);

// Equation 3, or W_H of equation 8 where messages grow.
double blocking_time(const SplitModel& model, int ranks);

// C(N) = cores / N · C(cores), equation 4 with the fraction turned over: the whole work is fixed.
double computation_time(const SplitModel& model, int ranks);

// Equations 7 and 9; with ranks on all cores every level runs on them, whatever `split` says.
SplitTime split_time(const SplitModel& model, int ranks, int split);

// The S with the least total; of equal ones the least, which hides most.
int best_split(const SplitModel& model, int ranks);

// The number of ranks, 2 … cores, with the least total at its best split.
int best_ranks(const SplitModel& model);

}  // namespace weft
