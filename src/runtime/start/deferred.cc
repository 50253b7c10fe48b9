// Keeps the deferred collectives (deferred.h), and starts them in order.
#include "runtime/start/deferred.h"

#include <sched.h>

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/adaptive/call_classes.h"
#include "runtime/call/shape.h"
#include "runtime/comm/communicators.h"
#include "runtime/job/runtime.h"
#include "runtime/request/persistent.h"
#include "runtime/request/requests.h"
#include "runtime/request/submit.h"
#include "runtime/start/operations.h"
#include "runtime/start/plans.h"
#include "select/calls_in_order.h"

namespace weft {
namespace {

// The deferred collectives of a communicator (started by the application, but not yet by Weft), in
// order.
using DeferredCalls = CallsInOrder<std::shared_ptr<DeferredCall>>;

// A deferred collective with a request of Weft. Whoever advances it first starts the collectives
// that were deferred before it.
class DeferredOperation : public RequestedOperation, public DeferredCall, private DeferredStep {
 public:
  DeferredOperation(Runtime& runtime, CallId id, const Call& call,
                    std::shared_ptr<Communicator> communicator);

 protected:
  Result<bool> begin() override;
  virtual bool has_begun() const = 0;
  Runtime& runtime() const { return runtime_; }

 private:
  Runtime& runtime_;
  DeferredCalls& deferred_;  // the deferred collectives of its communicator
};

class DeferredCollective final : public DeferredOperation {
 public:
  DeferredCollective(Runtime& runtime, CallId id, const Call& call,
                     std::shared_ptr<Communicator> communicator, const Answer& answer);
  bool try_to_start() override;

 private:
  Result<bool> over() override;
  bool has_begun() const override { return has_begun_.load(std::memory_order_acquire); }
  bool start_variant();
  std::shared_ptr<CollectiveOperation> carried_by(const Plan* variant);
  void count(const Plan* variant) const;
  bool begins_by_worker(const Plan& variant) const;

  // The plan; nullopt if the MPI library carries the collective out, for the reason in reason_.
  const std::optional<Plan> plan_;
  const Reason reason_;
  Made made_;
  std::shared_ptr<CollectiveOperation> carried_;
  bool by_worker_ = false;
  std::atomic<bool> has_begun_{
      false};  // true once other threads may advance carried_; written last
};

// A deferred MPI_Comm_idup or MPI_Comm_idup_with_info, which the MPI library carries out on the
// application's communicator. The new communicator gets the error handler that the old one had when
// the application made the call.
class DeferredDuplication final : public DeferredOperation {
 public:
  // info: nullopt for MPI_Comm_idup.
  DeferredDuplication(Runtime& runtime, CallId id, std::shared_ptr<Communicator> communicator,
                      std::optional<MPI_Info> info, MPI_Comm* made);
  ~DeferredDuplication() override;
  bool try_to_start() override;

 private:
  Result<bool> begin() override;
  Result<bool> over() override;
  bool has_begun() const override { return has_begun_.load(std::memory_order_acquire); }

  std::optional<MPI_Info> info_;  // a copy of the application's info argument
  MPI_Errhandler errhandler_{};
  MPI_Comm* const made_;
  MPI_Request librarys_{};
  int code_;
  std::atomic<bool> has_begun_{false};
  bool may_call_back_;  // whether attribute callbacks of the application may run now
};

// A deferred start of a persistent collective. Its request already exists.
class DeferredStart final : public DeferredCall {
 public:
  DeferredStart(Runtime& runtime, std::shared_ptr<PersistentOperation> operation)
      : runtime_(runtime), operation_(std::move(operation)) {}
  bool try_to_start() override;

 private:
  Runtime& runtime_;
  const std::shared_ptr<PersistentOperation> operation_;
};

void release(DeferredCalls& calls) {
  if (!calls.release()) return;
  deferring.fetch_sub(1);
  begin_epoch();
}

}  // namespace

DeferredOperation::DeferredOperation(Runtime& runtime, CallId id, const Call& call,
                                     std::shared_ptr<Communicator> communicator)
    : RequestedOperation(id, call, communicator, library_schedule(call, *communicator), nullptr, 0),
      runtime_(runtime),
      deferred_(communicator->attributes.find_or_make<DeferredCalls>()) {
  leave_to(*this);
  compute_as_here();
  if (runtime.observing()) times.started = now_ns();
}

Result<bool> DeferredOperation::begin() {
  if (!has_begun()) release(deferred_);
  return has_begun();
}

DeferredCollective::DeferredCollective(Runtime& runtime, CallId id, const Call& call,
                                       std::shared_ptr<Communicator> communicator,
                                       const Answer& answer)
    : DeferredOperation(runtime, id, call, std::move(communicator)),
      plan_(answer.plan ? std::optional(*answer.plan) : std::nullopt),
      reason_(answer.reason) {
  if (plan_ && plan_->carrier == Carrier::callers) leave_to_callers();
  if (!plan_ || !plan_->variants) return;
  CallClass& call_class = plan_->variants->call_class();
  made_ = {now_ns(), call_class.in_flight.load(std::memory_order_relaxed)};
  count_in(call_class.in_flight);
}

bool DeferredCollective::try_to_start() {
  if (!has_begun() && start_variant()) has_begun_.store(true, std::memory_order_release);
  return has_begun();
}

bool DeferredCollective::start_variant() {
  const Plan* variant = plan_ ? &*plan_ : nullptr;
  if (variant && variant->variants) {
    const auto next =
        next_variant(runtime(), id(), communicator(), variant->variants->call_class(), made_);
    if (!next) return false;
    variant = &plan_of(runtime(), call(), *plan_, *next);
  }
  carried_ = carried_by(variant);
  count(variant);
  const ComputesAs caller(computes_as());
  if (!carried_->has_memory()) return true;
  if (variant && !variant->declined && begins_by_worker(*variant)) {
    submit(runtime(), variant->engine, carried_);
    by_worker_ = true;
  } else if (!carried_->by_callers()) {
    carried_->advance();
  }
  return true;
}

// Returns whether a worker thread carries the collective out. This object then only checks for its
// completion.
bool DeferredCollective::begins_by_worker(const Plan& variant) const {
  const bool whole = variant.engine == Engine::tcc || variant.engine == Engine::assist;
  return whole && variant.communicator->worker;
}

// Counts the collective in the summary, as if it had not been deferred.
void DeferredCollective::count(const Plan* variant) const {
  Summary& summary = runtime().summary;
  if (!variant)
    summary.passed_on(id(), reason_);
  else if (variant->declined)
    summary.passed_on(id(), exact_reason(*variant->declined, plan_->variants->call_class()));
  else
    summary.handled(id(), variant->bytes, variant->schedule->node_bytes > 0);
}

std::shared_ptr<CollectiveOperation> DeferredCollective::carried_by(const Plan* variant) {
  if (!variant || variant->declined) return library_operation(id(), call(), communicator());
  return operation_in_order(id(), call(), *variant);
}

Result<bool> DeferredCollective::over() {
  if (!carried_->has_memory()) return Error{"", MPI_ERR_NO_MEM};
  if (by_worker_ ? !carried_->done() : !carried_->advance()) return false;
  if (carried_->error_code() != MPI_SUCCESS) return Error{"", carried_->error_code()};
  return true;
}

DeferredDuplication::DeferredDuplication(Runtime& runtime, CallId id,
                                         std::shared_ptr<Communicator> communicator,
                                         std::optional<MPI_Info> info, MPI_Comm* made)
    : DeferredOperation(runtime, id, Call{.comm = communicator->user}, communicator),
      made_(made),
      librarys_(handles.request_null),
      code_(library_calls.Comm_get_errhandler(this->communicator().user, &errhandler_)),
      may_call_back_(!runtime.operators_stay()) {
  if (!may_call_back_) leave_to_callers();
  if (!info) return;
  info_ = handles.info_null;
  if (*info != handles.info_null && code_ == MPI_SUCCESS)
    code_ = library_calls.Info_dup(*info, &*info_);
}

DeferredDuplication::~DeferredDuplication() {
  if (info_ && *info_ != handles.info_null) library_calls.Info_free(&*info_);
}

// Starts the duplication. It runs in an MPI call of the application, or on the progress thread
// while the application is blocked in one. Only here may attribute callbacks of the application
// run.
Result<bool> DeferredDuplication::begin() {
  const bool before = std::exchange(may_call_back_, true);
  const auto begun = DeferredOperation::begin();
  may_call_back_ = before;
  return begun;
}

bool DeferredDuplication::try_to_start() {
  if (!may_call_back_) return false;
  const MPI_Comm user = communicator().user;
  if (code_ == MPI_SUCCESS)
    code_ = info_ ? library_calls.Comm_idup_with_info(user, *info_, made_, &librarys_)
                  : library_calls.Comm_idup(user, made_, &librarys_);
  has_begun_.store(true, std::memory_order_release);
  return true;
}

Result<bool> DeferredDuplication::over() {
  int flag = 0;
  if (code_ == MPI_SUCCESS) code_ = library_calls.Test(&librarys_, &flag, MPI_STATUS_IGNORE);
  if (code_ == MPI_SUCCESS && !flag) return false;
  if (code_ == MPI_SUCCESS) code_ = library_calls.Comm_set_errhandler(*made_, errhandler_);
  if (errhandler_ != MPI_Errhandler{}) library_calls.Errhandler_free(&errhandler_);
  if (code_ != MPI_SUCCESS) return Error{"", code_};
  return true;
}

bool DeferredStart::try_to_start() {
  if (!operation_->advance()) runtime_.progress.submit(operation_, runtime_.threads_allowed());
  return true;
}

namespace {

// Adds the collective at the end of those that are deferred on the communicator.
void defer(Communicator& communicator, std::shared_ptr<DeferredCall> call) {
  if (!communicator.attributes.find_or_make<DeferredCalls>().defer(std::move(call))) return;
  deferring.fetch_add(1);
  begin_epoch();
}

int give_request(Runtime& runtime, Communicator& communicator,
                 std::shared_ptr<DeferredOperation> operation, MPI_Request* request) {
  communicator.retain_for_request();
  if (const int code = operation->make_request(); code != MPI_SUCCESS)
    return call_error_handler(*operation, code);
  *request = operation->request();
  Requests::own().add(operation);
  Requests::own().activated();
  defer(communicator, operation);
  runtime.progress.submit(std::move(operation), runtime.threads_allowed());
  return MPI_SUCCESS;
}

// Returns the communicator if collectives on it are deferred; otherwise nullptr.
Communicator* defers_calls(MPI_Comm comm) {
  if (deferring.load(std::memory_order_acquire) == 0) return nullptr;
  Communicator* communicator = Communicators::own().find(comm);
  const DeferredCalls* deferred =
      communicator ? communicator->attributes.find<DeferredCalls>() : nullptr;
  return deferred && deferred->any() ? communicator : nullptr;
}

}  // namespace

int defer(Runtime& runtime, CallId id, const Call& call, Communicator& communicator,
          const Answer& answer, MPI_Request* request) {
  auto operation = std::make_shared<DeferredCollective>(runtime, id, call,
                                                        communicator.shared_from_this(), answer);
  return give_request(runtime, communicator, std::move(operation), request);
}

std::optional<int> defer_behind_others(Runtime& runtime, CallId id, const Call& call,
                                       const Answer& answer, MPI_Request* request) {
  Communicator* communicator = defers_calls(call.comm);
  if (!communicator) return std::nullopt;
  if (const Plan* const plan = answer.plan; plan && plan->variants)
    plan->variants->call_class().among.count_call(runtime, *communicator,
                                                  plan->variants->call_class());
  return defer(runtime, id, call, *communicator, answer, request);
}

std::optional<int> defer_duplication(Runtime& runtime, CallId id, MPI_Comm comm,
                                     std::optional<MPI_Info> info, MPI_Comm* made,
                                     MPI_Request* request) {
  Communicator* communicator = defers_calls(comm);
  if (!communicator) return std::nullopt;
  return give_request(runtime, *communicator,
                      std::make_shared<DeferredDuplication>(
                          runtime, id, communicator->shared_from_this(), info, made),
                      request);
}

// After deferring the start, starts those deferred collectives that can start now. Unlike other
// deferred collectives, this one has no request whose completion call would do so later.
bool defer_start(Runtime& runtime, PersistentOperation& operation) {
  Communicator& own = operation.communicator();
  if (own.internal != own.user) return false;
  Communicator* communicator = defers_calls(own.user);
  if (!communicator) return false;
  defer(*communicator, std::make_shared<DeferredStart>(runtime, operation.shared_from_this()));
  release(communicator->attributes.find_or_make<DeferredCalls>());
  return true;
}

void release_deferred(Runtime& runtime, MPI_Comm comm) {
  if (deferring.load() == 0) return;
  const Communicator* communicator = Communicators::own().find(comm);
  if (!communicator) return;
  const auto* deferred = communicator->attributes.find<DeferredCalls>();
  if (!deferred) return;
  runtime.progress.drive_until([&] { return !deferred->any(); }, [] { sched_yield(); });
}

}  // namespace weft
