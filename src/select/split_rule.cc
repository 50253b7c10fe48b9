// Implements split_rule.h: derives the parameters of the split tree's model for a communicator, and
// a limit on the time for which the starting call helps.
#include "select/split_rule.h"

#include <algorithm>

#include "select/split_model.h"

namespace weft {
namespace {

bool carries_blocks(Kind kind) {
  return kind == Kind::gather || kind == Kind::scatter;
}

}  // namespace

int best_split(const NodeCores& cores, const Shape& shape, int arity) {
  if (cores.free == 0 || shape.size < 2) return 0;
  const int threads = static_cast<int>(std::int64_t{cores.free} * shape.size / cores.ranks);
  SplitModel model;
  model.cores = shape.size + std::max(threads, 1);
  model.arity = arity;
  model.grows = carries_blocks(shape.kind);
  return best_split(model, shape.size);
}

std::int64_t most_time_at_start_ns(const Schedule& schedule) {
  constexpr std::int64_t kLatency_ns = 20'000, kPerByte_ns = 1;
  const Shape& shape = schedule.shape;
  const int levels = std::min(schedule.tuning.split_levels, 30);
  const std::int64_t bytes = agreed_bytes(shape).value_or(0);
  const std::int64_t carried =
      carries_blocks(shape.kind) ? bytes / shape.size * ((1 << levels) - 1) : bytes * levels;
  return levels * kLatency_ns + carried * kPerByte_ns;
}

}  // namespace weft
