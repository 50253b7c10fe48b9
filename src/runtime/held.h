// Held operations: calls whose way is not known when the application makes them, since ranks still
// compare. The application has its request; the collective itself begins later, in its order.
#pragma once

#include <memory>
#include <optional>

#include "runtime/plans.h"
#include "runtime/requests.h"
#include "runtime/sites.h"

namespace weft {

class HeldOperation final : public RequestedOperation, private Later {
 public:
  // plan: none where the call is the library's.
  HeldOperation(Runtime& runtime, CallId id, const Call& call,
                std::shared_ptr<Communicator> communicator, const Plan* plan);

  // Begins the collective if its way is known.
  bool go_on();

 private:
  Result<bool> begin() override;
  Result<bool> over() override;
  std::shared_ptr<CollectiveOperation> carried_by(const Plan* way);
  void count(const Plan* way) const;

  Runtime& runtime_;
  const std::optional<Plan> plan_;
  Made made_;
  std::shared_ptr<CollectiveOperation> carried_;  // once it has begun
};

}  // namespace weft
