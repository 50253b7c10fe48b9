// Decides whether NCCL carries a persistent collective out (gpu/nccl.h). All ranks of the
// communicator decide together, in calls that are collective anyway. Where NCCL can carry the
// collective out, it is measured against the other way, in memory of Weft's.
#pragma once

#include <mpi.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "gpu/operation.h"
#include "gpu/runtime.h"
#include "transport/mpi/call.h"

namespace weft::gpu {

// NcclGroup: the state of a communicator whose collectives NCCL may carry out. The first persistent
// collective that NCCL has sets it up.
class NcclGroup {
 public:
  // Makes the operation that carries a call out without NCCL. All ranks call it together.
  using Otherwise = std::function<Result<Operation*>(const Call& call)>;

  NcclGroup() = default;
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  // Makes the operation for the call, by NCCL or otherwise, whose path says which and why. comm:
  // the communicator on which ranks agree. All ranks must call it together.
  Result<Operation*> make(const Call& call, MPI_Comm comm, Context* context, Runtime* runtime,
                          const Otherwise& otherwise);
  // Drops the state without freeing it. It is for the time after MPI_Finalize, when the device may
  // be gone.
  void forget();

 private:
  // NCCL's communicators for one communicator of the application's: a persistent collective needs
  // one of its own until it is freed.
  static constexpr std::size_t kComms = 8;

  // Candidate: all that this rank needs to carry the call out by NCCL.
  struct Candidate {
    std::shared_ptr<NcclComm> comm;
    NcclCall call;
    Holdings held;
  };
  // Verdict: the result of a measurement, equal on all ranks.
  struct Verdict {
    bool is_for_nccl = false;
    double by_nccl_us = 0, otherwise_us = 0;
    std::string otherwise;  // the other way
  };

  Result<bool> meet(MPI_Comm comm, Context* context, const Options& options);
  Result<std::optional<Candidate>> candidate(const Call& call, MPI_Comm comm, Context* context,
                                             Runtime* runtime, std::string* why_not);
  Result<bool> create(std::size_t index, MPI_Comm comm);
  std::uint32_t free_comms() const;
  Result<Verdict> compare(const Call& call, MPI_Comm comm, NcclComm* by, Runtime* runtime,
                          const Otherwise& otherwise) const;

  bool met_ = false, is_forced_ = false;
  std::string why_never_;  // why NCCL is never used on this communicator; empty if it may be
  Context* context_ = nullptr;
  const Nccl* nccl_ = nullptr;
  std::array<std::shared_ptr<NcclComm>, kComms> comms_;  // made at their first use
};

}  // namespace weft::gpu
