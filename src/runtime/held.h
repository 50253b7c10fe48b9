// Held calls: what the application has started, but what cannot begin yet, since ranks still
// compare and the way of an earlier call is not known. The application has its request; the
// collective itself begins later, in its order.
#pragma once

#include <memory>
#include <optional>

#include "runtime/plans.h"
#include "runtime/requests.h"
#include "runtime/sites.h"

namespace weft {

class HeldCall {
 public:
  virtual ~HeldCall() = default;
  // Begins if nothing is in its way; false: something is.
  virtual bool go_on() = 0;
};

// One with a request of Weft's. Whoever advances it lets go what is held before it, too.
class HeldOperation : public RequestedOperation, public HeldCall, private Later {
 public:
  HeldOperation(Runtime& runtime, CallId id, const Call& call,
                std::shared_ptr<Communicator> communicator);

 protected:
  Result<bool> begin() override;
  virtual bool has_begun() const = 0;
  Runtime& runtime() const { return runtime_; }

 private:
  Runtime& runtime_;
};

class HeldCollective final : public HeldOperation {
 public:
  // plan: none where the call is the library's.
  HeldCollective(Runtime& runtime, CallId id, const Call& call,
                 std::shared_ptr<Communicator> communicator, const Plan* plan);
  bool go_on() override;

 private:
  Result<bool> over() override;
  bool has_begun() const override { return carried_ != nullptr; }
  std::shared_ptr<CollectiveOperation> carried_by(const Plan* way);
  void count(const Plan* way) const;
  bool begins_by_worker(const Plan& way) const;

  const std::optional<Plan> plan_;
  Made made_;
  std::shared_ptr<CollectiveOperation> carried_;  // once it has begun
  bool by_worker_ = false;
};

// MPI_Comm_idup, MPI_Comm_idup_with_info: the library's own, on the application's communicator. The
// new communicator has the error handler that the old one had when the application made the call.
class HeldDuplication final : public HeldOperation {
 public:
  // info: none for MPI_Comm_idup.
  HeldDuplication(Runtime& runtime, CallId id, std::shared_ptr<Communicator> communicator,
                  std::optional<MPI_Info> info, MPI_Comm* made);
  ~HeldDuplication() override;
  bool go_on() override;

 private:
  Result<bool> begin() override;
  Result<bool> over() override;
  bool has_begun() const override { return has_begun_; }

  std::optional<MPI_Info> info_;  // a copy
  MPI_Errhandler errhandler_{};
  MPI_Comm* const made_;
  MPI_Request librarys_{};
  int code_;
  bool has_begun_ = false;
  bool may_call_back_;  // copying attributes may run functions of the application's
};

// A start of a persistent operation, which has its request already.
class HeldStart final : public HeldCall {
 public:
  HeldStart(Runtime& runtime, std::shared_ptr<PersistentOperation> operation)
      : runtime_(runtime), operation_(std::move(operation)) {}
  bool go_on() override;

 private:
  Runtime& runtime_;
  const std::shared_ptr<PersistentOperation> operation_;
};

}  // namespace weft
