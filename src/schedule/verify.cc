// Checks the schedules of all ranks together: that they belong to the same call, that their
// messages match, and that their order permits no deadlock or race.
#include "schedule/verify.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "schedule/verify_order.h"

namespace weft {
namespace {

// The messages from one rank to another, as the sender and as the receiver lists them: bytes of
// each message, in order.
struct Pair {
  std::vector<std::int64_t> sends;
  std::vector<std::int64_t> recvs;
};

using Pairs = std::map<std::pair<int, int>, Pair>;  // indexed by (sender, receiver)

Pairs messages(std::span<const Schedule> all) {
  Pairs pairs;
  for (const Schedule& schedule : all) {
    const int rank = schedule.shape.rank;
    for (const Step& step : schedule.steps) {
      const std::int64_t bytes = payload_bytes(schedule.shape, step.first);
      if (step.kind == StepKind::send) pairs[{rank, step.peer}].sends.push_back(bytes);
      if (step.kind == StepKind::recv) pairs[{step.peer, rank}].recvs.push_back(bytes);
    }
  }
  return pairs;
}

std::string mismatch(const Pair& pair) {
  for (std::size_t i = 0; i < std::min(pair.sends.size(), pair.recvs.size()); ++i) {
    if (pair.sends[i] != pair.recvs[i])
      return "number " + std::to_string(i + 1) + " is sent with " + std::to_string(pair.sends[i]) +
             " bytes and received with " + std::to_string(pair.recvs[i]);
  }
  if (pair.sends.size() == pair.recvs.size()) return "";
  return std::to_string(pair.sends.size()) + " sent, " + std::to_string(pair.recvs.size()) +
         " received";
}

// Compares the collectives of the MPI library that leaders of different nodes call. Ranks of equal
// node rank must call the same ones in the same order. Returns a message about the first
// difference, or an empty string.
std::string mismatch_of_leaders(std::span<const Schedule> all) {
  const auto calls = [&](int rank) {
    std::vector<std::array<std::int64_t, 3>> made;
    const Schedule& schedule = all[static_cast<std::size_t>(rank)];
    for (const Step& step : schedule.steps) {
      if (step.kind != StepKind::leaders) continue;
      // Only the root of a bcast has an input, so the output is compared on the others; both have
      // the same size.
      const Operand& data = step.first.count > 0 ? step.first : step.second;
      made.push_back({static_cast<std::int64_t>(step.collective), step.peer,
                      payload_bytes(schedule.shape, data)});
    }
    return made;
  };
  for (const Schedule& schedule : all) {
    const Shape& shape = schedule.shape;
    if (!shape.has_leaders) continue;
    const int node_rank = shape.nodes->local_rank(shape.rank);
    const int first = shape.nodes->ranks(0)[static_cast<std::size_t>(node_rank)];
    if (calls(shape.rank) != calls(first))
      return "ranks " + std::to_string(first) + " and " + std::to_string(shape.rank) +
             " call different collectives of leaders";
  }
  return "";
}

// Returns whether two shapes say the same about nodes and NUMA domains. Values are compared and not
// addresses, since in tests each rank may have its own copy of these objects.
bool of_one_map(const Shape& one, const Shape& other) {
  const auto same = [](const auto& a, const auto& b) { return a == b || (a && b && *a == *b); };
  return one.on_one_node == other.on_one_node && one.has_leaders == other.has_leaders &&
         same(one.nodes, other.nodes) && same(one.domains, other.domains);
}

bool of_one_call(std::span<const Schedule> all) {
  const Shape& first = all[0].shape;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const Shape& shape = all[rank].shape;
    if (shape.rank != static_cast<int>(rank) || shape.size != static_cast<int>(all.size()) ||
        shape.kind != first.kind || shape.root != first.root || !of_one_map(shape, first) ||
        std::strcmp(all[rank].algorithm, all[0].algorithm) != 0 ||
        all[rank].exchanges_once != all[0].exchanges_once ||
        all[rank].is_direct != all[0].is_direct)
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
  for (const Schedule& schedule : all_ranks) {
    const auto first_here = static_cast<std::size_t>(rank_here(schedule.shape, 0));
    if (schedule.node_bytes != all_ranks[first_here].node_bytes)
      return Error{name + "not all ranks of a node use as much of its memory"};
  }
  const Pairs pairs = messages(all_ranks);
  for (const auto& [ranks, pair] : pairs) {
    if (const std::string failure = mismatch(pair); !failure.empty())
      return Error{name + "messages from rank " + std::to_string(ranks.first) + " to rank " +
                   std::to_string(ranks.second) + ": " + failure};
  }
  if (const std::string failure = mismatch_of_leaders(all_ranks); !failure.empty())
    return Error{name + failure};
  if (const std::string failure = find_disorder(all_ranks); !failure.empty())
    return Error{name + failure};
  return true;
}

}  // namespace weft
