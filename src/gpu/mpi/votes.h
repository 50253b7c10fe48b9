// Votes by which the ranks of a communicator decide how a collective travels. Each rank has a say,
// and all get the same answer. The exchanged structures are plain bytes.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace weft::gpu {

// Vote: what a rank contributes to the decision whether something may be used.
struct Vote {
  // Bit mask of the resources that are free on this rank; 0 if it refuses.
  std::uint32_t spots = 0;
  char why_not[200] = "";
};

Vote refusal(const std::string& why);

// Returns the bit mask of the resources that are free on all ranks. If it is 0, *why_not gets the
// reason: a rank's, or if_all_taken if no rank has given one.
std::uint32_t common(const std::vector<Vote>& all, const std::string& if_all_taken,
                     std::string* why_not);

Result<bool> checked_vote(int code);

// Returns the messages of all ranks, by rank. All ranks must call it together.
template <class Message>
Result<std::vector<Message>> all_of(const Message& mine, MPI_Comm comm) {
  int ranks = 1;
  MPI_Comm_size(comm, &ranks);
  std::vector<Message> all(static_cast<std::size_t>(ranks));
  constexpr int kBytes = static_cast<int>(sizeof mine);
  const auto done =
      checked_vote(MPI_Allgather(&mine, kBytes, MPI_BYTE, all.data(), kBytes, MPI_BYTE, comm));
  if (!done) return done.error();
  return all;
}

// Returns what common() makes of all ranks' votes. All ranks must call it together.
Result<std::uint32_t> agreed(const Vote& mine, MPI_Comm comm, const std::string& if_all_taken,
                             std::string* why_not);

// Returns an error on all ranks if any rank passes one. All ranks must call it together.
Result<bool> all_have(const Result<bool>& mine, MPI_Comm comm);

}  // namespace weft::gpu
