// Implements stages.h. The level of a message follows from the lowest set bit of the child's
// relative rank (patterns/tree.h).
#include "sim/stages.h"

#include <algorithm>
#include <bit>

#include "patterns/ring.h"

namespace weft::sim {
namespace {

bool is_message(const Step& step) {
  return step.kind == StepKind::send || step.kind == StepKind::recv;
}

}  // namespace

bool goes_up(Kind kind) {
  return kind == Kind::reduce || kind == Kind::gather;
}

int level_of(const Shape& shape, int peer) {
  const int child = std::max(ring_at(shape.rank, -shape.root, shape.size),
                             ring_at(peer, -shape.root, shape.size));
  return std::countr_zero(static_cast<unsigned>(child)) + 1;
}

std::vector<std::int64_t> messages_of_levels(int ranks) {
  std::vector<std::int64_t> messages{0};
  for (int child = 1; child < ranks; ++child) {
    const auto level = static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(child))) + 1;
    if (messages.size() <= level) messages.resize(level + 1);
    ++messages[level];
  }
  return messages;
}

std::uint32_t end_of_first_stage(const Schedule& schedule, int split) {
  const bool up = goes_up(schedule.shape.kind);
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    if (!is_message(step)) continue;
    const int level = level_of(schedule.shape, step.peer);
    if (up ? level > split : level <= split) return static_cast<std::uint32_t>(i);
  }
  return static_cast<std::uint32_t>(schedule.steps.size());
}

}  // namespace weft::sim
