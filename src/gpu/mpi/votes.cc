#include "gpu/mpi/votes.h"

#include <algorithm>
#include <cstring>

namespace weft::gpu {

Vote refusal(const std::string& why) {
  Vote vote;
  const std::size_t length = std::min(why.size(), sizeof vote.why_not - 1);
  std::memcpy(vote.why_not, why.data(), length);
  return vote;
}

std::uint32_t common(const std::vector<Vote>& all, const std::string& if_all_taken,
                     std::string* why_not) {
  std::uint32_t spots = ~0U;
  for (const Vote& one : all) spots &= one.spots;
  if (spots != 0) return spots;
  *why_not = if_all_taken;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].spots != 0) continue;
    // A rank that gives no reason has no free spot.
    if (all[rank].why_not[0] == '\0') continue;
    const std::string said = all[rank].why_not;
    // The text already names a rank if it comes from an Offer, which all ranks have received.
    const bool names_a_rank = said.rfind("rank ", 0) == 0;
    *why_not = names_a_rank ? said : "rank " + std::to_string(rank) + ": " + said;
    break;
  }
  return spots;
}

Result<bool> checked_vote(int code) {
  if (code == MPI_SUCCESS) return true;
  return Error{"the ranks could not agree on how a collective travels", code};
}

Result<std::uint32_t> agreed(const Vote& mine, MPI_Comm comm, const std::string& if_all_taken,
                             std::string* why_not) {
  const auto all = all_of(mine, comm);
  if (!all) return all.error();
  return common(*all, if_all_taken, why_not);
}

Result<bool> all_have(const Result<bool>& mine, MPI_Comm comm) {
  int there = mine ? 1 : 0, all = 0;
  const auto asked = checked_vote(MPI_Allreduce(&there, &all, 1, MPI_INT, MPI_MIN, comm));
  if (!mine) return mine.error();
  if (!asked) return asked;
  return all != 0 ? asked : Error{"another rank cannot prepare this collective"};
}

}  // namespace weft::gpu
