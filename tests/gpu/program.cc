#include "program.h"

#include <algorithm>
#include <iterator>

namespace weft::gpu {
namespace {

// Returns a random count. Most are small; some need several blocks of a kernel, few need several
// rounds.
std::size_t random_count(Random* random) {
  constexpr int kMost[] = {40, 40, 40, 40, 40, 40, 3000, 3000, 40'000};
  return 1 + static_cast<std::size_t>(below(random, kMost[below(random, std::size(kMost))]));
}

Step random_step(Random* random, const Program& program) {
  Step step{};
  step.kind = static_cast<Kind>(below(random, 3));
  step.from = below(random, program.buffers);
  step.to = (step.from + 1 + below(random, program.buffers - 1)) % program.buffers;
  step.factor = below(random, 7) - 3;
  step.addend = below(random, 100);
  step.what = static_cast<What>(below(random, 3));
  step.root = below(random, program.ranks);
  step.chunks = 1 + static_cast<std::size_t>(below(random, 4));
  step.number = -1;
  step.in_kernel = step.what == What::sum && below(random, 2) == 0;
  return step;
}

// Makes the collective of a step persistent, at random or because it is in a graph, or replaces it
// by an earlier persistent one.
Step as_it_starts(Step step, bool in_graph, Random* random, Program* program) {
  auto& persistent = program->persistent;
  if (step.kind != Kind::collective) return step;
  if (!persistent.empty() && below(random, 3) == 0) {
    return persistent[static_cast<std::size_t>(below(random, static_cast<int>(persistent.size())))];
  }
  if (!in_graph && below(random, 3) != 0) return step;
  step.number = static_cast<int>(persistent.size());
  persistent.push_back(step);
  return step;
}

void apply(const Step& step, weft_gpu_type type, State* state) {
  const auto from = static_cast<std::size_t>(step.from), to = static_cast<std::size_t>(step.to);
  std::vector<Bytes> given;
  for (const auto& buffers : *state) given.push_back(buffers[from]);
  for (std::size_t rank = 0; rank < state->size(); ++rank) {
    Bytes& target = (*state)[rank][to];
    const std::size_t count = target.size() / element_bytes(type);
    if (step.kind == Kind::collective) {
      target = outcome(type, step.what, step.root, static_cast<int>(rank), given);
    } else if (step.kind == Kind::add) {
      add_elements(type, given[rank].data(), target.data(), count);
    } else {
      affine_elements(type, target.data(), count, step.factor, step.addend);
    }
  }
}

}  // namespace

Program random_program(Random* random) {
  Program program;
  program.ranks = 1 + below(random, kMostRanks);
  program.streams = 1 + below(random, 3);
  program.buffers = 2 + below(random, 4);
  program.type = kElementTypes[below(random, std::size(kElementTypes))];
  program.count = random_count(random);
  const int sections = 1 + below(random, 4);
  for (int section = 0; section < sections; ++section) {
    Section made;
    made.launches = below(random, 2) * (1 + below(random, 4));
    const int steps = 1 + below(random, 8);
    for (int i = 0; i < steps; ++i) {
      const Step step = random_step(random, program);
      made.steps.push_back(as_it_starts(step, made.launches > 0, random, &program));
    }
    program.sections.push_back(made);
  }
  return program;
}

Bytes initial(const Program& program, int rank, int buffer) {
  Numbers content(program.count);
  for (std::size_t i = 0; i < content.size(); ++i) {
    content[i] = rank * 1000 + buffer * 100 + static_cast<Number>(i);
  }
  return elements_of(program.type, content);
}

State expected(const Program& program) {
  State state;
  for (int rank = 0; rank < program.ranks; ++rank) {
    state.emplace_back();
    for (int buffer = 0; buffer < program.buffers; ++buffer) {
      state.back().push_back(initial(program, rank, buffer));
    }
  }
  for (const Section& section : program.sections) {
    for (int run = 0; run < std::max(1, section.launches); ++run) {
      for (const Step& step : section.steps) apply(step, program.type, &state);
    }
  }
  return state;
}

}  // namespace weft::gpu
