// Decides whether a collective is carried out in one kernel (gpu/one_kernel.h). All ranks of the
// communicator decide together, in calls that are collective anyway, and get the same answer.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "gpu/operation.h"
#include "gpu/runtime.h"
#include "transport/mpi/call.h"

namespace weft::gpu {

// OneKernelGroup: the state of a communicator whose collectives may run in one kernel. The first
// persistent collective that qualifies for it sets it up.
class OneKernelGroup {
 public:
  OneKernelGroup() = default;
  ~OneKernelGroup();
  OneKernelGroup(const OneKernelGroup&) = delete;
  OneKernelGroup& operator=(const OneKernelGroup&) = delete;

  // Returns the operation for the call if one kernel carries it out. Returns nullptr if MPI does,
  // with the reason in *why_not. All ranks must call it together.
  Result<Operation*> decide(const Call& call, Context* context, Runtime* runtime,
                            std::string* why_not);
  // Drops the state without freeing it. It is for the time after MPI_Finalize, when the
  // communicator is gone and the device may be, too.
  void forget();

 private:
  Result<bool> gather(MPI_Comm comm, const Options& options);
  Result<bool> meet(Context* context, const Options& options);
  Result<std::uint32_t> vote(const Result<OneKernelCall>& mine, const Result<Holdings>& held,
                             const Context* context, std::string* why_not);

  MPI_Comm comm_ = MPI_COMM_NULL;  // communicator of this node's ranks, on which they agree
  // Most bytes per rank that one kernel may carry out: the minimum of all ranks' settings.
  std::uint64_t most_bytes_ = ~std::uint64_t{};
  bool met_ = false;
  std::string why_never_;  // why one kernel is never used on this communicator; empty if it may be
  std::shared_ptr<Peers> peers_;
};

}  // namespace weft::gpu
