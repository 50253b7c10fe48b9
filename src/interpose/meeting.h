// Meeting: what the ranks of a communicator on one node tell each other while a persistent
// collective is initialised, by exchanges in the communicator's memory. Why not by the library's
// collectives: the first of each kind costs tens of microseconds, and where ranks share a core each
// may cost milliseconds.
#pragma once

#include <optional>
#include <type_traits>
#include <vector>

#include "engine/progress.h"
#include "interpose/communicators.h"

namespace weft::interpose {

// Collective over the communicator, for whose ranks each call waits.
class Meeting {
 public:
  Meeting(Progress& progress, Communicator& communicator)
      : progress_(progress), communicator_(communicator) {}

  Communicator& communicator() { return communicator_; }

  // False: ranks take part in different calls.
  bool carry_out(const Schedule& schedule, Operands operands);

  // What each rank says, by rank; none: ranks take part in different calls.
  template <class Words>
  std::optional<std::vector<Words>> exchange(const Words& own) {
    static_assert(std::is_trivially_copyable_v<Words> && sizeof own <= kLinePayloadBytes);
    std::vector<Words> all(static_cast<std::size_t>(communicator_.size));
    if (!exchange(&own, all.data(), sizeof own)) return std::nullopt;
    return all;
  }

 private:
  bool exchange(const void* own, void* all, std::int64_t bytes);

  Progress& progress_;
  Communicator& communicator_;
};

}  // namespace weft::interpose
