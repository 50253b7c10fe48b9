// Computes the model of the split tree: how long a collective on a tree takes, and the program with
// it, if the S levels next to the leaves, which have the most messages, run on the application's
// cores. The other levels run on the cores without a rank, several ranks on each. Denis, Jaeger,
// Jeannot, Pérache, Taboada, IJHPCA 33(6), 2019, section 6.2, equations 3 to 9; equations 4 and 5
// are corrected as said at their functions. The unit of time is one transfer of the collective's
// buffer between two cores.
#pragma once

#include <vector>

namespace weft {

struct SplitModel {
  int cores = 1;  // number of cores of a node, with and without ranks; at least 1
  int arity = 2;  // arity of the tree; 2 for a binomial tree
  // Whether messages of a level are `arity` times as long as those of the level below, as in gather
  // and scatter.
  bool grows = false;
  // True if a message starts as soon as it can; false if each level waits for the previous one.
  bool dataflow = false;
  // The time of a message of each level, in transfers of the collective's buffer between two cores.
  // Levels differ, for instance, if only some cross nodes. The last entry holds for all further
  // levels.
  std::vector<double> level_cost = {1};
  // The time of the computation on all cores, in transfers of the collective's buffer; 0 if it is
  // as long as the blocking collective on all cores.
  double computation = 0;
};

struct SplitTime {
  // Time of communication on the application's cores, which nothing hides.
  double application = 0;
  double communication = 0;  // time of communication on the cores without a rank
  double computation = 0;
  double total = 0;  // time of the program: application + max(communication, computation)
};

// Returns the number of levels of the tree, ⌈log_arity ranks⌉.
int tree_levels(int ranks, int arity = 2);

// Returns the number of messages of a level, which is counted from 1: F(N, i) = ⌈N/2^i − 1/2⌉ for N
// ranks and arity 2. Equation 5 of Denis et al. has + 1/2, which counts more messages than the tree
// has.
int level_messages(int ranks, int level, int arity = 2);

// Returns the time of the blocking collective, in transfers of the collective's buffer: equation 3
// of Denis et al., or W_H of equation 8 if messages grow.
double blocking_time(const SplitModel& model, int ranks);

// Returns the time of the computation by N = `ranks` cores, C(N) = cores / N · C(cores): equation 4
// of Denis et al. with the fraction inverted, since the total work is fixed.
double computation_time(const SplitModel& model, int ranks);

// Returns the times of the collective, of the computation beside it, and of the application as a
// whole (equations 7 and 9 of the paper above), if `split` levels of the tree run on the
// application's cores. If there are ranks on all cores, every level runs on these, whatever `split`
// is.
SplitTime split_time(const SplitModel& model, int ranks, int split);

// Returns the number of levels on the application's cores with which the program takes the least
// time. If several numbers give the same time, it returns the least one, which hides most
// communication.
int best_split(const SplitModel& model, int ranks);

// Returns the number of ranks, from 2 to `cores`, with which the program takes the least time. For
// each number, the best split is assumed.
int best_ranks(const SplitModel& model);

}  // namespace weft
