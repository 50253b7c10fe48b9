// A random program of streams: what all of its ranks do, and what they should have at the end.
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
  int from, to;           // buffers
  Number factor, addend;  // of affine, on `to`
  What what;
  int root;
  std::size_t chunks;
  int number;      // of a persistent collective; -1: it is none
  bool in_kernel;  // it is an allreduce in one kernel
};

// Steps that run once, or as a graph that is launched so many times.
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

using State = std::vector<std::vector<Bytes>>;  // by rank and buffer
State expected(const Program& program);

}  // namespace weft::gpu
