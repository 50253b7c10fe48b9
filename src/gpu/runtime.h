// All that a process has of Weft's for its devices: contexts, the agent, operations.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpu/agent.h"
#include "gpu/context.h"
#include "gpu/driver.h"
#include "gpu/operation.h"

namespace weft::gpu {

// Why collectives have failed of which no call has told the user.
class Untold {
 public:
  void add(const std::string& why);
  void remove(const std::string& why);
  // A sentence; empty: there are none.
  std::string sentence();

 private:
  std::mutex mutex_;  // guards the next
  std::multiset<std::string> all_;
};

class Runtime {
 public:
  explicit Runtime(const Driver& driver, const Options& options = {})
      : driver_(driver), options_(options) {}
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const Driver& driver() const { return driver_; }
  const Options& options() const { return options_; }
  Agent& agent() { return agent_; }
  Untold& untold() { return untold_; }

  // Of the device that is current on the calling thread.
  Result<Context*> context();

  // pinned: what the parts' copies go through, which the operation holds from now on. places: of
  // that memory, where the parts take turns (relay.h); 0: each part has its own.
  Result<Operation*> add(Context* context, std::vector<Part> parts,
                         std::unique_ptr<Collective> collective, Pinned pinned,
                         std::shared_ptr<Order> order, std::size_t places = 0);
  // The same in two steps: with all that it holds, and when nothing can fail any more.
  Result<std::unique_ptr<Operation>> make(Context* context, std::vector<Part> parts,
                                          std::unique_ptr<Collective> collective, Pinned pinned,
                                          std::shared_ptr<Order> order, std::size_t places = 0);
  Operation* watch(std::unique_ptr<Operation> made);
  // Instead of the second step.
  static void drop(std::unique_ptr<Operation> made) { give_back(made.release()); }
  // What one that kernels alone carry out holds: taken before the ranks agree on it, since nobody
  // may fail afterwards.
  Result<Holdings> hold(Context* context);
  // One that kernels alone carry out; its spot is taken until it is gone.
  Operation* add(Context* context, ByKernel by_kernel, Holdings held);
  // One reference less. Calls no function of the driver's: graphs call it, too.
  void release(Operation* operation);

  // What nothing uses any more is free again.
  void collect();

 private:
  static Result<Holdings> holdings(Context* context, std::size_t channels, Pinned pinned);
  static void give_back(Operation* operation);

  const Driver& driver_;
  const Options options_;
  std::mutex mutex_;  // guards the next two
  // By number, too, where the driver has them: a device that has been reset may have the same
  // address again.
  std::map<std::pair<void*, unsigned long long>, std::unique_ptr<Context>> contexts_;
  std::vector<std::unique_ptr<Context>> gone_;
  std::mutex released_mutex_;  // guards the next; never held while the driver is called
  std::vector<Operation*> released_;
  Untold untold_;
  Agent agent_;
};

}  // namespace weft::gpu
