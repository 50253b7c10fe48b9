// A random program of streams: the steps of all its ranks, and what the buffers must hold at the
// end.
#pragma once

#include <random>
#include <vector>

#include "ranks.h"

namespace weft::gpu {

using Random = std::minstd_rand;

inline int below(Random* random, int bound) {
  return static_cast<int>((*random)() % static_cast<unsigned>(bound));
}

enum class Kind { affine, add, collective };

struct Step {
  Kind kind;
  int from, to;           // numbers of the buffers
  Number factor, addend;  // for affine steps, which work on `to`
  What what;
  int root;
  std::size_t chunks;
  int number;      // number of a persistent collective; -1: not persistent
  bool in_kernel;  // whether it is an allreduce in one kernel
};

// Steps that run once, or are captured into a graph that is launched `launches` times.
struct Section {
  std::vector<Step> steps;
  int launches;  // 0: no graph
};

struct Program {
  int ranks, streams, buffers;
  weft_gpu_type type;
  std::size_t count;
  std::vector<Section> sections;
  std::vector<Step> persistent;
};

inline constexpr int kMostRanks = 5;

Program random_program(Random* random);

Bytes initial(const Program& program, int rank, int buffer);

using State = std::vector<std::vector<Bytes>>;  // indexed by rank, then by buffer
State expected(const Program& program);

}  // namespace weft::gpu
