// Decides whether kernels alone carry a collective out (gpu/one_kernel.h). All ranks of the
// communicator decide together, in calls that are collective anyway, and get the same answer.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/operation.h"
#include "gpu/runtime.h"
#include "transport/mpi/call.h"

namespace weft::gpu {

// OneKernelGroup: the state of a communicator whose collectives kernels may carry out. The first
// persistent collective that qualifies for it sets it up.
class OneKernelGroup {
 public:
  OneKernelGroup() = default;
  ~OneKernelGroup();
  OneKernelGroup(const OneKernelGroup&) = delete;
  OneKernelGroup& operator=(const OneKernelGroup&) = delete;

  // Returns the operation for the call if kernels carry it out. Returns nullptr if MPI does,
  // with the reason in *why_not. All ranks must call it together. limited: the call to which the
  // limit of bytes applies, which is another one if `call` is a trial in its place.
  Result<Operation*> decide(const Call& call, const Call& limited, Context* context,
                            Runtime* runtime, std::string* why_not);
  // Drops the state without freeing it. It is for the time after MPI_Finalize, when the
  // communicator is gone and the device may be, too.
  void forget();

 private:
  Result<bool> gather(MPI_Comm comm, const Options& options);
  Result<bool> meet(Context* context, const Options& options);
  Result<bool> share_slots(const OneKernelCall& mine, ByKernel* made, std::string* why_not);
  // A collective as kernels carry it out in the rule's form, and the forms that are worth
  // measuring.
  struct Agreed {
    ByKernel by_kernel;
    std::vector<Form> forms;
  };
  Result<std::optional<Agreed>> agree(const Call& call, Context* context,
                                      const Result<Holdings>& held, std::string* why_not);
  Result<Form> fastest(const Call& call, Context* context, Runtime* runtime, const Agreed& agreed);

  MPI_Comm comm_ = MPI_COMM_NULL;  // communicator of this node's ranks, on which they agree
  // Most bytes that a rank may publish: the minimum of all ranks' settings.
  std::uint64_t most_bytes_ = ~std::uint64_t{};
  std::uint64_t budget_us_ = 0;  // how long to measure forms: the minimum of all ranks' settings
  bool met_ = false;
  std::string why_never_;  // why kernels alone carry nothing out here; empty if they may
  std::shared_ptr<Peers> peers_;
  // The forms that were measured to be the fastest, by kind, bytes, type and operator.
  std::map<std::array<std::uint64_t, 4>, Form> fastest_;
};

}  // namespace weft::gpu
