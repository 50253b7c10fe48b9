// Whoever advances a held operation lets go what is held before it, too.
#include "runtime/held.h"

#include <sched.h>

#include "base/clock.h"
#include "runtime/communicators.h"
#include "runtime/runtime.h"
#include "runtime/shape.h"
#include "runtime/sites.h"
#include "runtime/submit.h"

namespace weft {
namespace {

void let_go(Communicator& communicator) {
  if (!communicator.sites->held.let_go()) return;
  holding.fetch_sub(1);
  begin_epoch();
}

}  // namespace

HeldOperation::HeldOperation(Runtime& runtime, CallId id, const Call& call,
                             std::shared_ptr<Communicator> communicator, const Plan* plan)
    : RequestedOperation(id, call, communicator, library_schedule(call, *communicator), nullptr, 0),
      runtime_(runtime),
      plan_(plan ? std::optional(*plan) : std::nullopt) {
  leave_to(*this);
  compute_as_here();
  if (plan_ && plan_->by_callers) leave_to_callers();
  if (runtime.observing()) times.started = now_ns();
  if (!plan_ || !plan_->ways) return;
  Site& site = *plan_->ways->site;
  made_ = {now_ns(), site.in_flight.load(std::memory_order_relaxed)};
  is_of(site);
}

bool HeldOperation::go_on() {
  if (carried_) return true;
  const Plan* way = plan_ ? &*plan_ : nullptr;
  if (way && way->ways) {
    const auto next = next_way(runtime_, id(), communicator(), *way->ways->site, made_);
    if (!next) return false;
    way = &plan_of(runtime_, call(), *plan_, *next);
  }
  carried_ = carried_by(way);
  count(way);
  const ComputesAs caller(computes_as());
  if (carried_->has_memory() && !carried_->by_callers()) carried_->advance();
  return true;
}

// For the summary, as if it had begun in its start.
void HeldOperation::count(const Plan* way) const {
  Summary& summary = runtime_.summary;
  if (!way || way->declined)
    summary.passed_on(id(), way ? *way->declined : Reason::arguments);
  else
    summary.handled(id(), way->bytes, way->schedule->node_bytes > 0);
}

std::shared_ptr<CollectiveOperation> HeldOperation::carried_by(const Plan* way) {
  if (!way || way->declined) return library_operation(id(), call(), communicator());
  return operation_in_order(runtime_, id(), call(), *way);
}

Result<bool> HeldOperation::begin() {
  if (!carried_) let_go(communicator());
  return carried_ != nullptr;
}

Result<bool> HeldOperation::over() {
  if (!carried_) return false;
  if (!carried_->has_memory()) return Error{"", MPI_ERR_NO_MEM};
  if (!carried_->advance()) return false;
  if (carried_->error_code() != MPI_SUCCESS) return Error{"", carried_->error_code()};
  return true;
}

int hold(Runtime& runtime, CallId id, const Call& call, Communicator& communicator,
         const Plan* plan, MPI_Request* request) {
  communicator.lend();
  auto operation =
      std::make_shared<HeldOperation>(runtime, id, call, communicator.shared_from_this(), plan);
  if (const int code = operation->make_request(); code != MPI_SUCCESS)
    return call_error_handler(*operation, code);
  *request = operation->request();
  runtime.requests.add(operation);
  runtime.requests.activated();
  if (communicator.sites->held.hold(operation)) {
    holding.fetch_add(1);
    begin_epoch();
  }
  runtime.progress.submit(std::move(operation), runtime.threads_allowed());
  return MPI_SUCCESS;
}

bool hold_behind_others(Runtime& runtime, CallId id, const Call& call, const Plan* plan,
                        MPI_Request* request, int* code) {
  Communicator* communicator = runtime.communicators.find(call.comm);
  if (!communicator || !communicator->sites->held.any()) return false;
  if (plan && plan->ways)
    communicator->sites->count_call(runtime, *communicator, *plan->ways->site);
  *code = hold(runtime, id, call, *communicator, plan, request);
  return true;
}

void let_held_go(Runtime& runtime, MPI_Comm comm) {
  if (holding.load() == 0) return;
  const Communicator* communicator = runtime.communicators.find(comm);
  if (!communicator) return;
  const auto& held = communicator->sites->held;
  runtime.progress.drive_until([&] { return !held.any(); }, [] { sched_yield(); });
}

}  // namespace weft
