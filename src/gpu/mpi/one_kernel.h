// Whether a collective is carried out in one kernel (gpu/one_kernel.h): all ranks of the
// communicator decide it together, in calls that are collective anyway, and take the same answer.
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

// What a communicator has for it, from the first persistent collective on that may be.
class OneNode {
 public:
  OneNode() = default;
  ~OneNode();
  OneNode(const OneNode&) = delete;
  OneNode& operator=(const OneNode&) = delete;

  // Collective. nullptr: MPI carries it out, for the reason in `why_not`.
  Result<Operation*> decide(const Call& call, Context* context, Runtime* runtime,
                            std::string* why_not);
  // MPI has been finalised: its communicator is gone, and the device may be, too.
  void forget();

 private:
  Result<bool> gather(MPI_Comm comm, const Options& options);
  Result<bool> meet(Context* context, const Options& options);
  Result<std::uint32_t> vote(const Result<OneKernelCall>& mine, const Result<Holdings>& held,
                             const Context* context, std::string* why_not);

  MPI_Comm comm_ = MPI_COMM_NULL;  // the ranks of this node, for Weft's agreements
  // Of a rank: the least of what they were told.
  std::uint64_t most_bytes_ = ~std::uint64_t{};
  bool met_ = false;
  std::string why_never_;  // empty: peers_ are there
  std::shared_ptr<Peers> peers_;
};

}  // namespace weft::gpu
