// Keeps deferred calls, and releases them in order.
#include "runtime/start/held.h"

#include <sched.h>

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/adaptive/sites.h"
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

// Holds the deferred calls of one communicator.
using HeldCalls = CallsInOrder<std::shared_ptr<HeldCall>>;

// A deferred call with a request of Weft's. Advancing it first releases the calls deferred before
// it.
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
  HeldCalls& held_;  // on its communicator
};

class HeldCollective final : public HeldOperation {
 public:
  // plan: nullptr if the call is the library's.
  HeldCollective(Runtime& runtime, CallId id, const Call& call,
                 std::shared_ptr<Communicator> communicator, const Plan* plan);
  bool go_on() override;

 private:
  Result<bool> over() override;
  bool has_begun() const override { return has_begun_.load(std::memory_order_acquire); }
  bool goes_on();
  std::shared_ptr<CollectiveOperation> carried_by(const Plan* way);
  void count(const Plan* way) const;
  bool begins_by_worker(const Plan& way) const;

  const std::optional<Plan> plan_;
  Made made_;
  std::shared_ptr<CollectiveOperation> carried_;
  bool by_worker_ = false;
  std::atomic<bool> has_begun_{
      false};  // last: other threads may advance what is carried from then on
};

// MPI_Comm_idup and MPI_Comm_idup_with_info, made by the library on the application's communicator.
// The new communicator gets the error handler that the old one had at the application's call.
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
  bool has_begun() const override { return has_begun_.load(std::memory_order_acquire); }

  std::optional<MPI_Info> info_;  // a copy
  MPI_Errhandler errhandler_{};
  MPI_Comm* const made_;
  MPI_Request librarys_{};
  int code_;
  std::atomic<bool> has_begun_{false};
  bool may_call_back_;  // copying attributes may run functions of the application's
};

// A deferred start of a persistent operation, which already has its request.
class HeldStart final : public HeldCall {
 public:
  HeldStart(Runtime& runtime, std::shared_ptr<PersistentOperation> operation)
      : runtime_(runtime), operation_(std::move(operation)) {}
  bool go_on() override;

 private:
  Runtime& runtime_;
  const std::shared_ptr<PersistentOperation> operation_;
};

void let_go(HeldCalls& calls) {
  if (!calls.let_go()) return;
  holding.fetch_sub(1);
  begin_epoch();
}

}  // namespace

HeldOperation::HeldOperation(Runtime& runtime, CallId id, const Call& call,
                             std::shared_ptr<Communicator> communicator)
    : RequestedOperation(id, call, communicator, library_schedule(call, *communicator), nullptr, 0),
      runtime_(runtime),
      held_(communicator->attributes.find_or_make<HeldCalls>()) {
  leave_to(*this);
  compute_as_here();
  if (runtime.observing()) times.started = now_ns();
}

Result<bool> HeldOperation::begin() {
  if (!has_begun()) let_go(held_);
  return has_begun();
}

HeldCollective::HeldCollective(Runtime& runtime, CallId id, const Call& call,
                               std::shared_ptr<Communicator> communicator, const Plan* plan)
    : HeldOperation(runtime, id, call, std::move(communicator)),
      plan_(plan ? std::optional(*plan) : std::nullopt) {
  if (plan_ && plan_->carrier == Carrier::callers) leave_to_callers();
  if (!plan_ || !plan_->ways) return;
  Site& site = *plan_->ways->site;
  made_ = {now_ns(), site.in_flight.load(std::memory_order_relaxed)};
  count_in(site.in_flight);
}

bool HeldCollective::go_on() {
  if (!has_begun() && goes_on()) has_begun_.store(true, std::memory_order_release);
  return has_begun();
}

bool HeldCollective::goes_on() {
  const Plan* way = plan_ ? &*plan_ : nullptr;
  if (way && way->ways) {
    const auto next = next_way(runtime(), id(), communicator(), *way->ways->site, made_);
    if (!next) return false;
    way = &plan_of(runtime(), call(), *plan_, *next);
  }
  carried_ = carried_by(way);
  count(way);
  const ComputesAs caller(computes_as());
  if (!carried_->has_memory()) return true;
  if (way && !way->declined && begins_by_worker(*way)) {
    submit(runtime(), way->engine, carried_);
    by_worker_ = true;
  } else if (!carried_->by_callers()) {
    carried_->advance();
  }
  return true;
}

// The worker then carries it out; this operation only checks for its end.
bool HeldCollective::begins_by_worker(const Plan& way) const {
  const bool whole = way.engine == Engine::tcc || way.engine == Engine::assist;
  return whole && way.communicator->worker;
}

// Counts the call for the summary as if it had begun in its start.
void HeldCollective::count(const Plan* way) const {
  Summary& summary = runtime().summary;
  if (!way || way->declined)
    summary.passed_on(id(), way ? *way->declined : Reason::arguments);
  else
    summary.handled(id(), way->bytes, way->schedule->node_bytes > 0);
}

std::shared_ptr<CollectiveOperation> HeldCollective::carried_by(const Plan* way) {
  if (!way || way->declined) return library_operation(id(), call(), communicator());
  return operation_in_order(id(), call(), *way);
}

Result<bool> HeldCollective::over() {
  if (!carried_->has_memory()) return Error{"", MPI_ERR_NO_MEM};
  if (by_worker_ ? !carried_->done() : !carried_->advance()) return false;
  if (carried_->error_code() != MPI_SUCCESS) return Error{"", carried_->error_code()};
  return true;
}

HeldDuplication::HeldDuplication(Runtime& runtime, CallId id,
                                 std::shared_ptr<Communicator> communicator,
                                 std::optional<MPI_Info> info, MPI_Comm* made)
    : HeldOperation(runtime, id, Call{.comm = communicator->user}, communicator),
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

HeldDuplication::~HeldDuplication() {
  if (info_ && *info_ != handles.info_null) library_calls.Info_free(&*info_);
}

// Runs on a caller, or on the thread while a caller is blocked.
Result<bool> HeldDuplication::begin() {
  const bool before = std::exchange(may_call_back_, true);
  const auto begun = HeldOperation::begin();
  may_call_back_ = before;
  return begun;
}

bool HeldDuplication::go_on() {
  if (!may_call_back_) return false;
  const MPI_Comm user = communicator().user;
  if (code_ == MPI_SUCCESS)
    code_ = info_ ? library_calls.Comm_idup_with_info(user, *info_, made_, &librarys_)
                  : library_calls.Comm_idup(user, made_, &librarys_);
  has_begun_.store(true, std::memory_order_release);
  return true;
}

Result<bool> HeldDuplication::over() {
  int flag = 0;
  if (code_ == MPI_SUCCESS) code_ = library_calls.Test(&librarys_, &flag, MPI_STATUS_IGNORE);
  if (code_ == MPI_SUCCESS && !flag) return false;
  if (code_ == MPI_SUCCESS) code_ = library_calls.Comm_set_errhandler(*made_, errhandler_);
  if (errhandler_ != MPI_Errhandler{}) library_calls.Errhandler_free(&errhandler_);
  if (code_ != MPI_SUCCESS) return Error{"", code_};
  return true;
}

bool HeldStart::go_on() {
  if (!operation_->advance()) runtime_.progress.submit(operation_, runtime_.threads_allowed());
  return true;
}

namespace {

// Adds the call behind those deferred on the communicator.
void hold(Communicator& communicator, std::shared_ptr<HeldCall> call) {
  if (!communicator.attributes.find_or_make<HeldCalls>().hold(std::move(call))) return;
  holding.fetch_add(1);
  begin_epoch();
}

int give_request(Runtime& runtime, Communicator& communicator,
                 std::shared_ptr<HeldOperation> operation, MPI_Request* request) {
  communicator.lend();
  if (const int code = operation->make_request(); code != MPI_SUCCESS)
    return call_error_handler(*operation, code);
  *request = operation->request();
  Requests::own().add(operation);
  Requests::own().activated();
  hold(communicator, operation);
  runtime.progress.submit(std::move(operation), runtime.threads_allowed());
  return MPI_SUCCESS;
}

// Returns the communicator if calls are deferred on it, else nullptr.
Communicator* holds_calls(MPI_Comm comm) {
  if (holding.load(std::memory_order_acquire) == 0) return nullptr;
  Communicator* communicator = Communicators::own().find(comm);
  const HeldCalls* held = communicator ? communicator->attributes.find<HeldCalls>() : nullptr;
  return held && held->any() ? communicator : nullptr;
}

}  // namespace

int hold(Runtime& runtime, CallId id, const Call& call, Communicator& communicator,
         const Plan* plan, MPI_Request* request) {
  auto operation =
      std::make_shared<HeldCollective>(runtime, id, call, communicator.shared_from_this(), plan);
  return give_request(runtime, communicator, std::move(operation), request);
}

std::optional<int> hold_behind_others(Runtime& runtime, CallId id, const Call& call,
                                      const Plan* plan, MPI_Request* request) {
  Communicator* communicator = holds_calls(call.comm);
  if (!communicator) return std::nullopt;
  if (plan && plan->ways)
    plan->ways->site->among.count_call(runtime, *communicator, *plan->ways->site);
  return hold(runtime, id, call, *communicator, plan, request);
}

std::optional<int> hold_duplication(Runtime& runtime, CallId id, MPI_Comm comm,
                                    std::optional<MPI_Info> info, MPI_Comm* made,
                                    MPI_Request* request) {
  Communicator* communicator = holds_calls(comm);
  if (!communicator) return std::nullopt;
  return give_request(
      runtime, *communicator,
      std::make_shared<HeldDuplication>(runtime, id, communicator->shared_from_this(), info, made),
      request);
}

// No deferred request of its own keeps earlier calls alive, so that these may be gone by now.
bool hold_start(Runtime& runtime, PersistentOperation& operation) {
  Communicator& own = operation.communicator();
  if (own.shadow != own.user) return false;
  Communicator* communicator = holds_calls(own.user);
  if (!communicator) return false;
  hold(*communicator, std::make_shared<HeldStart>(runtime, operation.shared_from_this()));
  let_go(communicator->attributes.find_or_make<HeldCalls>());
  return true;
}

void let_held_go(Runtime& runtime, MPI_Comm comm) {
  if (holding.load() == 0) return;
  const Communicator* communicator = Communicators::own().find(comm);
  if (!communicator) return;
  const auto* held = communicator->attributes.find<HeldCalls>();
  if (!held) return;
  runtime.progress.drive_until([&] { return !held->any(); }, [] { sched_yield(); });
}

}  // namespace weft
