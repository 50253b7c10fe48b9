// All that a process has of Weft's for its devices: contexts, the agent, operations.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "gpu/agent.h"
#include "gpu/context.h"
#include "gpu/driver.h"
#include "gpu/operation.h"

namespace weft::gpu {

class Runtime {
 public:
  explicit Runtime(const Driver& driver) : driver_(driver) {}
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const Driver& driver() const { return driver_; }
  Agent& agent() { return agent_; }

  // Of the device that is current on the calling thread.
  Result<Context*> context();

  // pinned: what the parts' copies go through, which the operation holds from now on.
  Result<Operation*> add(Context* context, std::vector<Part> parts,
                         std::unique_ptr<Collective> collective, Pinned pinned,
                         std::shared_ptr<Order> order);
  // One reference less. Calls no function of the driver's: graphs call it, too.
  void release(Operation* operation);

 private:
  void collect();

  const Driver& driver_;
  std::mutex mutex_;  // guards the next
  std::map<void*, std::unique_ptr<Context>> contexts_;
  std::mutex released_mutex_;  // guards the next; never held while the driver is called
  std::vector<Operation*> released_;
  Agent agent_;
};

}  // namespace weft::gpu
