// Implements RankMap: keeps runs of ranks whose numbers in MPI_COMM_WORLD have equal distances, and
// finds the run of a rank by binary search.
#include "transport/rank_map.h"

#include <algorithm>

#include "base/equals_shared.h"

namespace weft {

RankMap::RankMap(const std::vector<int>& world_ranks) {
  const auto count = static_cast<int>(world_ranks.size());
  for (int rank = 0; rank < count; ++rank) {
    const int value = world_ranks[static_cast<std::size_t>(rank)];
    if (!runs_.empty()) {
      Run& last = runs_.back();
      if (rank == last.begin + 1) last.stride = value - last.first;
      if (value == last.first + (rank - last.begin) * last.stride) continue;
    }
    runs_.push_back({rank, value, 1});
  }
  if (runs_.empty()) runs_.push_back({0, 0, 1});
  runs_.shrink_to_fit();
}

const RankMap::Run& RankMap::run_with(int rank) const {
  const auto behind =
      std::upper_bound(runs_.begin(), runs_.end(), rank,
                       [](int looked_for, const Run& run) { return looked_for < run.begin; });
  return *(behind - 1);
}

std::shared_ptr<const RankMap> shared_map(const std::vector<int>& world_ranks) {
  static auto* all = new EqualsShared<RankMap>;
  return all->get(RankMap(world_ranks));
}

}  // namespace weft
