// Runtime: Weft's process-wide state for collectives in streams: contexts, the agent and
// operations.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "gpu/agent.h"
#include "gpu/context.h"
#include "gpu/driver.h"
#include "gpu/operation.h"
#include "gpu/untold.h"

namespace weft::gpu {

class Runtime final : public OperationOwner {
 public:
  explicit Runtime(const Driver& driver, const Options& options = {})
      : driver_(driver), options_(options) {}
  ~Runtime() override;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const Driver& driver() const { return driver_; }
  const Options& options() const override { return options_; }
  Agent& agent() { return agent_; }
  Untold& untold() override { return untold_; }
  void expect() override { agent_.expect(); }
  void count_graphs(int change) override { agent_.count_graphs(change); }

  // Returns the context of the device that is current on the calling thread.
  Result<Context*> context();

  // Makes an operation and lets the agent watch it. pinned: the memory for the chunks' copies,
  // which the operation takes over. order: that of the communicator's collectives; nullptr for
  // persistent ones. buffers: the number of pieces of that memory, each used by several chunks one
  // after the other (relay.h); 0 if each chunk has its own.
  Result<Operation*> add(Context* context, std::vector<Chunk> chunks,
                         std::unique_ptr<Collective> collective, Pinned pinned,
                         std::shared_ptr<Order> order, std::size_t buffers = 0);
  // make() and watch() are the two halves of add(). make() allocates everything and may fail;
  // watch() cannot fail.
  Result<std::unique_ptr<Operation>> make(Context* context, std::vector<Chunk> chunks,
                                          std::unique_ptr<Collective> collective, Pinned pinned,
                                          std::shared_ptr<Order> order, std::size_t buffers = 0);
  Operation* watch(std::unique_ptr<Operation> made);
  // Frees an operation that make() has returned. It must be called if watch() is not.
  static void drop(std::unique_ptr<Operation> made) { give_back(made.release()); }
  // Allocates the resources of an operation that kernels alone carry out. Must precede the ranks'
  // agreement on it, after which no rank may fail.
  Result<Holdings> hold(Context* context);
  // Makes an operation that kernels alone carry out, with the resources from hold(). Its memory
  // (spot) is in use until the operation is destroyed.
  Operation* add(Context* context, ByKernel by_kernel, Holdings held);
  // Makes an operation that NCCL carries out. Its communicator is in use until the operation is
  // destroyed.
  Operation* add(Context* context, ByNccl by_nccl, Holdings held);
  void release(Operation* operation) override;

  // Frees operations that nothing uses any more, for reuse of their resources.
  void collect();

 private:
  static Result<Holdings> holdings(Context* context, std::size_t channels, Pinned pinned);
  static void give_back(Operation* operation);

  const Driver& driver_;
  const Options options_;
  std::mutex mutex_;  // guards the next two members
  // The contexts by address and, if the driver has them, by its IDs: after a reset, the new context
  // of a device may have the address of the old one.
  std::map<std::pair<void*, unsigned long long>, std::unique_ptr<Context>> contexts_;
  std::vector<std::unique_ptr<Context>> gone_;
  std::mutex released_mutex_;  // guards the next member; never held while the driver is called
  std::vector<Operation*> released_;
  Untold untold_;
  Agent agent_;
};

}  // namespace weft::gpu
