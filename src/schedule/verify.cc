// What only the schedules of all ranks together show: matching messages, no deadlock.
#include "schedule/verify.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

namespace weft {
namespace {

struct Message {
  std::int64_t bytes = 0;
  std::uint32_t round = 0;
};

struct Pair {
  std::vector<Message> sends;
  std::vector<Message> recvs;
};

using Pairs = std::map<std::pair<int, int>, Pair>;  // by sender and receiver

// Some rank's round can end only once `peer` has reached `peer_round`.
struct Dependency {
  int peer;
  std::uint32_t peer_round;
};

// By rank and round.
using Dependencies = std::vector<std::vector<std::vector<Dependency>>>;

Pairs messages(std::span<const Schedule> all) {
  Pairs pairs;
  for (const Schedule& schedule : all) {
    const int rank = schedule.shape.rank;
    std::uint32_t i = 0;
    for (std::uint32_t round = 0; round < schedule.rounds(); ++round) {
      for (; i < schedule.round_ends[round]; ++i) {
        const Step& step = schedule.steps[i];
        const std::int64_t size = layout_of(schedule.shape, step.first.unit).size;
        const Message message{step.first.count * size, round};
        if (step.kind == StepKind::send) pairs[{rank, step.peer}].sends.push_back(message);
        if (step.kind == StepKind::recv) pairs[{step.peer, rank}].recvs.push_back(message);
      }
    }
  }
  return pairs;
}

std::string mismatch(const Pair& pair) {
  for (std::size_t i = 0; i < std::min(pair.sends.size(), pair.recvs.size()); ++i) {
    if (pair.sends[i].bytes != pair.recvs[i].bytes)
      return "number " + std::to_string(i + 1) + " is sent with " +
             std::to_string(pair.sends[i].bytes) + " bytes and received with " +
             std::to_string(pair.recvs[i].bytes);
  }
  if (pair.sends.size() == pair.recvs.size()) return "";
  return std::to_string(pair.sends.size()) + " sent, " + std::to_string(pair.recvs.size()) +
         " received";
}

Dependencies dependencies(std::span<const Schedule> all, const Pairs& pairs) {
  Dependencies result(all.size());
  for (std::size_t rank = 0; rank < all.size(); ++rank) result[rank].resize(all[rank].rounds());
  for (const auto& [ranks, pair] : pairs) {
    const auto [from, to] = ranks;
    for (std::size_t i = 0; i < pair.sends.size(); ++i) {
      result[from][pair.sends[i].round].push_back({to, pair.recvs[i].round});
      result[to][pair.recvs[i].round].push_back({from, pair.sends[i].round});
    }
  }
  return result;
}

// The first rank that never finishes, -1 if all do.
int find_stuck(const Dependencies& dependencies) {
  std::vector<std::uint32_t> reached(dependencies.size(), 0);
  const auto can_end = [&](const std::vector<Dependency>& round) {
    return std::all_of(round.begin(), round.end(),
                       [&](const Dependency& d) { return reached[d.peer] >= d.peer_round; });
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t rank = 0; rank < dependencies.size(); ++rank) {
      const auto& rounds = dependencies[rank];
      while (reached[rank] < rounds.size() && can_end(rounds[reached[rank]])) {
        ++reached[rank];
        progress = true;
      }
    }
  }
  for (std::size_t rank = 0; rank < dependencies.size(); ++rank) {
    if (reached[rank] < dependencies[rank].size()) return static_cast<int>(rank);
  }
  return -1;
}

bool of_one_call(std::span<const Schedule> all) {
  const Shape& first = all[0].shape;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const Shape& shape = all[rank].shape;
    if (shape.rank != static_cast<int>(rank) || shape.size != static_cast<int>(all.size()) ||
        shape.kind != first.kind || shape.root != first.root ||
        std::strcmp(all[rank].algorithm, all[0].algorithm) != 0)
      return false;
  }
  return true;
}

}  // namespace

Result<bool> verify(std::span<const Schedule> all_ranks) {
  if (all_ranks.empty()) return Error{"no schedules to verify"};
  const std::string name =
      std::string(kind_name(all_ranks[0].shape.kind)) + " " + all_ranks[0].algorithm + ": ";
  if (!of_one_call(all_ranks)) return Error{name + "the schedules are not those of one call"};
  for (const Schedule& schedule : all_ranks) {
    if (auto verified = verify_local(schedule); !verified) return verified;
  }
  const Pairs pairs = messages(all_ranks);
  for (const auto& [ranks, pair] : pairs) {
    if (const std::string failure = mismatch(pair); !failure.empty())
      return Error{name + "messages from rank " + std::to_string(ranks.first) + " to rank " +
                   std::to_string(ranks.second) + ": " + failure};
  }
  const int stuck = find_stuck(dependencies(all_ranks, pairs));
  if (stuck >= 0)
    return Error{name + "deadlock: rank " + std::to_string(stuck) + " never finishes"};
  return true;
}

}  // namespace weft
