#include "runtime/start/staged_calls.h"

#include <memory>
#include <utility>

#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/call/device_memory.h"
#include "runtime/call/library_support.h"
#include "runtime/call/shape.h"
#include "runtime/comm/neighbors.h"
#include "runtime/request/blocking_call.h"
#include "runtime/request/submit.h"
#include "transport/mpi/kernels.h"
#include "transport/mpi/library_step.h"

namespace weft {
namespace {

int failed(const Call& call, int code) {
  library_calls.Comm_call_errhandler(call.comm, code);
  return code;
}

// Makes the MPI library's call, in its non-blocking form if it must not block.
int call_library(CallId id, const Call& call) {
  BlockingCall guard(id);
  if (!guard.must_not_block()) return library_blocking(call, call.comm);
  return guard.drive(
      [&](MPI_Request* request) { return library_nonblocking(call, call.comm, request); }, nullptr);
}

// Returns data on the application's communicator, on which the MPI library communicates itself;
// nullptr for an intercommunicator.
std::shared_ptr<Communicator> users_communicator(const Call& call) {
  int inter = 0, rank = 0, size = 1;
  library_calls.Comm_test_inter(call.comm, &inter);
  if (inter) return nullptr;
  library_calls.Comm_rank(call.comm, &rank);
  library_calls.Comm_size(call.comm, &size);
  auto made =
      std::make_shared<Communicator>(call.comm, InternalCommunicator{call.comm}, rank, size);
  if (is_neighborhood(call.kind)) made->neighbors = neighbors_of(call.comm);
  return made;
}

}  // namespace

std::shared_ptr<Communicator> needs_copies_on(const Runtime& runtime, const Call& call) {
  if (runtime.native() || !may_need_copies(call.kind) || call.comm == handles.comm_null)
    return nullptr;
  Communicator* const known = Communicators::own().find(call.comm);
  auto communicator = known ? known->shared_from_this() : users_communicator(call);
  if (!communicator || (is_neighborhood(call.kind) && !communicator->neighbors)) return nullptr;
  // The library itself reports wrong arguments.
  if (!arguments_look_right(call, *communicator)) return nullptr;
  const bool needed = StagedBuffers::are_needed(call, shape_of(call, *communicator));
  return needed ? communicator : nullptr;
}

int carry_out_on_copies(CallId id, const Call& call, const Communicator& communicator) {
  const auto copies = StagedBuffers::of(call, shape_of(call, communicator));
  if (!copies->there()) return failed(call, MPI_ERR_NO_MEM);
  // If the driver refuses, the call is made all the same for the sake of the other ranks.
  const bool has_come = copies->bring_in();
  const int code = call_library(id, copies->staged(call));
  if (code != MPI_SUCCESS || (has_come && copies->take_out())) return code;
  return failed(call, MPI_ERR_OTHER);
}

int start_on_copies(Runtime& runtime, CallId id, const Call& call,
                    std::shared_ptr<Communicator> communicator, std::atomic<int>* in_flight,
                    MPI_Request* request) {
  // The counter's communicator must exist as long as the operation.
  struct Both {
    std::shared_ptr<Communicator> users, counters;
  };
  const auto both = std::make_shared<Both>(Both{users_communicator(call), std::move(communicator)});
  const std::shared_ptr<Communicator> users(both, both->users.get());
  auto operation = std::make_shared<RequestedOperation>(id, call, users,
                                                        library_schedule(call, *users), nullptr, 0);
  if (runtime.operators_stay() && reduces(call.kind) && !is_predefined(call.op))
    operation->leave_to_callers();
  const int code = operation->has_memory() ? operation->make_request() : MPI_ERR_NO_MEM;
  if (code != MPI_SUCCESS) return call_error_handler(*operation, code);
  *request = operation->request();
  if (in_flight) operation->count_in(*in_flight);
  Requests::own().add(operation);
  Requests::own().activated();
  if (!operation->advance())
    runtime.progress.submit(std::move(operation), runtime.threads_allowed());
  return MPI_SUCCESS;
}

}  // namespace weft
