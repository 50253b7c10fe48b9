// Implements the calls that create and free communicators, set hints on them, and free requests,
// datatypes and operators. MPI forbids freeing or cancelling the request of an active collective
// (MPI-4.1, 6.12).
#include "interpose/objects.h"

#include <atomic>
#include <functional>
#include <optional>
#include <utility>

#include "base/log.h"
#include "interpose/generalised.h"
#include "interpose/generated/bodies.h"
#include "interpose/hooks.h"
#include "library/generated/library_calls.h"
#include "library/generated/next_calls.h"
#include "library/handles.h"
#include "library/session_communicators.h"
#include "runtime/adaptive/call_classes.h"
#include "runtime/adaptive/learnt.h"
#include "runtime/call/shape.h"
#include "runtime/comm/communicators.h"
#include "runtime/job/epoch.h"
#include "runtime/job/runtime.h"
#include "runtime/request/blocking_call.h"
#include "runtime/request/freed_later.h"
#include "runtime/request/inline_call.h"
#include "runtime/request/persistent.h"
#include "runtime/request/requests.h"
#include "runtime/request/transfers.h"
#include "runtime/start/all_in_call.h"
#include "runtime/start/deferred.h"

namespace weft::interpose {
namespace {

// Frees a datatype or operator at once if no active collective uses it; otherwise when the last
// collective that uses it is complete. uses: tells whether a collective uses the handle. free: the
// MPI library's call. Returns an MPI error code.
template <class Handle, class Uses>
int free_after_use(Handle* handle, Handle null, int (*free)(Handle*), Uses uses) {
  Runtime* runtime = Runtime::active();
  begin_epoch();
  if (!runtime || Requests::own().existing() == 0) return free(handle);
  std::shared_ptr<FreedLater<Handle>> freed_later;
  for (auto& operation : Requests::own().all()) {
    if (!std::invoke(uses, *operation, *handle)) continue;
    if (!freed_later) freed_later = std::make_shared<FreedLater<Handle>>(*handle, free);
    operation->keep(freed_later);
  }
  if (!freed_later) return free(handle);
  *handle = null;
  return MPI_SUCCESS;
}

Hints inherited_hints(MPI_Comm comm) {
  Runtime* runtime = Runtime::active();
  const Communicator* parent = runtime ? Communicators::own().find(comm) : nullptr;
  return parent ? parent->hints : Hints{};
}

// Reads the info hints for a communicator. It is collective over `comm`. Returns no hints if Weft
// carries out no collectives on this communicator.
Hints hints_on(MPI_Comm comm, MPI_Info info) {
  Runtime* runtime = Runtime::active();
  const bool served =
      runtime && comm != handles.comm_null && Communicators::may_have_internal(comm);
  return served ? read_hints(info, comm) : Hints{};
}

// Tells the user that the hint weft_engine has no effect in this job. It prints this only once and
// only on rank 0 of `comm`, since a program may set the hint on many communicators.
void say_hint_is_void(const Runtime& runtime, MPI_Comm comm) {
  static std::atomic_flag said;
  int rank = 0;
  library_calls.Comm_rank(comm, &rank);
  if (rank != 0 || said.test_and_set()) return;
  const std::string why =
      runtime.config.engine == Engine::native ? "the engine of the program is native" : kLevelKept;
  say("weft_engine has no effect on a communicator: " + why);
}

void add_communicator(MPI_Comm comm, const Hints& hints) {
  Runtime* runtime = Runtime::active();
  if (!runtime || comm == handles.comm_null) return;
  if (!runtime->native()) weft::add_communicator(*runtime, comm, hints);
  const bool asks_for_one = hints.engine && *hints.engine != Engine::native;
  if (asks_for_one && !runtime->takes_all()) say_hint_is_void(*runtime, comm);
}

}  // namespace

void communicator_created(MPI_Comm* new_comm, int code) {
  if (code == MPI_SUCCESS) add_communicator(*new_comm, {});
}

namespace special {

int Comm_dup(MPI_Comm comm, MPI_Comm* newcomm) {
  BlockingCall guard(CallId::Comm_dup);
  after_deferred(comm);
  const auto post = [&](MPI_Request* request) {
    return library_calls.Comm_idup(comm, newcomm, request);
  };
  const int made =
      guard.must_not_block() ? guard.drive(post, nullptr) : next_calls.Comm_dup(comm, newcomm);
  const int code = made_of(comm, newcomm, made);
  if (code == MPI_SUCCESS) add_communicator(*newcomm, inherited_hints(comm));
  return code;
}

namespace {

// Returns the runtime if this MPI_Comm_idup may be deferred (started later, behind collectives that
// cannot start yet); otherwise nullptr. In Open MPI the Fortran binding calls PMPI_Comm_idup and
// reads the new handle at once from a temporary variable, so that the call cannot be deferred. In
// this case all deferred calls on `comm` are started first.
Runtime* defers_duplications(MPI_Comm comm, const MPI_Comm* newcomm, const MPI_Request* request) {
  Runtime* runtime = newcomm && request ? Runtime::active() : nullptr;
#if defined(WEFT_FAMILY_OPENMPI)
  if (runtime && (this_thread.is & kProfiling)) {
    release_deferred(*runtime, comm);
    return nullptr;
  }
#else
  static_cast<void>(comm);
#endif
  return runtime;
}

}  // namespace

// Duplicates a communicator without blocking. If collectives on `comm` are deferred (waiting for
// the other ranks' choice), the duplication is deferred, too: the MPI library must get all
// collective calls in the application's order.
int Comm_idup(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request) {
  Runtime* runtime = defers_duplications(comm, newcomm, request);
  if (runtime)
    if (const auto code =
            defer_duplication(*runtime, CallId::Comm_idup, comm, std::nullopt, newcomm, request))
      return *code;
  return made_of(comm, newcomm, next_calls.Comm_idup(comm, newcomm, request));
}

int Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request) {
  Runtime* runtime = defers_duplications(comm, newcomm, request);
  if (runtime)
    if (const auto code =
            defer_duplication(*runtime, CallId::Comm_idup_with_info, comm, info, newcomm, request))
      return *code;
  return made_of(comm, newcomm, next_calls.Comm_idup_with_info(comm, info, newcomm, request));
}

int Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm) {
  BlockingCall guard(CallId::Comm_dup_with_info);
  join_collective(guard, comm);
  const int code = made_of(comm, newcomm, next_calls.Comm_dup_with_info(comm, info, newcomm));
  if (code == MPI_SUCCESS) add_communicator(*newcomm, hints_on(*newcomm, info));
  return code;
}

// Sets hints on a communicator; they apply to collectives that start later. Each engine starts
// collectives in an order of its own, so that two engines must not share one internal communicator.
// The communicator therefore gets a new internal communicator.
int Comm_set_info(MPI_Comm comm, MPI_Info info) {
  BlockingCall guard(CallId::Comm_set_info);
  after_deferred(comm);
  const int code = next_calls.Comm_set_info(comm, info);
  const Hints hints = code == MPI_SUCCESS ? hints_on(comm, info) : Hints{};
  if (!hints.any()) return code;
  join_collective(guard, comm);
  InlineCall::own().hand_over();
  if (const auto before = Communicators::own().remove(comm)) {
    Learnt::own().note(*before);
    forget_comparisons(*before);
  }
  add_communicator(comm, hints);
  return code;
}

}  // namespace special

namespace {

// Unregisters a communicator that is about to be freed. The destructor registers it again unless
// is_freed() has been called, for instance if an application callback leaves the call by longjmp().
class Forgotten {
 public:
  explicit Forgotten(MPI_Comm comm) : known_(Communicators::own().remove(comm)) {}
  ~Forgotten() {
    if (known_) Communicators::own().put_back(known_);
  }
  Forgotten(const Forgotten&) = delete;
  Forgotten& operator=(const Forgotten&) = delete;

  void is_freed() {
    const auto freed = std::exchange(known_, nullptr);
    if (!freed) return;
    freed->freed.store(true);
    Learnt::own().note(*freed);
    forget_comparisons(*freed);
  }

 private:
  std::shared_ptr<Communicator> known_;
};

// Frees a communicator by free(). Weft first drops its own data about the communicator, because the
// MPI library may give the handle to a new communicator at once. Returns an MPI error code.
int free_communicator(CallId id, bool nested, MPI_Comm* comm, int (*free)(MPI_Comm*)) {
  std::optional<BlockingCall> guard;
  if (!nested) guard.emplace(id);
  Runtime* runtime = Runtime::active();
  if (!runtime) return free_of_session(comm, free);
  release_deferred(*runtime, *comm);
  InlineCall::own().hand_over();
  LongjmpSafe<Forgotten> forgotten(*comm);
  const int code = free_of_session(comm, free);
  if (code == MPI_SUCCESS) forgotten->is_freed();
  return code;
}

}  // namespace

namespace object {

int Comm_free(bool nested, MPI_Comm* comm) {
  return free_communicator(CallId::Comm_free, nested, comm, next_calls.Comm_free);
}

int Comm_disconnect(bool nested, MPI_Comm* comm) {
  return free_communicator(CallId::Comm_disconnect, nested, comm, next_calls.Comm_disconnect);
}

// Frees a request. It is an error to free the request of an active collective. A program may free
// it, however, after MPI_Request_get_status has reported the collective as complete.
int Request_free(bool, MPI_Request* request) {
  Runtime* runtime = Runtime::active();
  if (runtime) InlineCall::own().hand_over();
  const auto operation =
      runtime && Requests::own().existing() > 0 ? Requests::own().find(*request) : nullptr;
  auto* persistent = operation ? operation->persistent() : nullptr;
  if (runtime && known_transfers.load() > 0) Transfers::own().freed(*request);
  if (operation && operation->active()) {
    int complete = 0;
    if (!persistent) next_calls.Request_get_status(*request, &complete, MPI_STATUS_IGNORE);
    if (!complete) return call_error_handler(*operation, MPI_ERR_REQUEST);
  } else if (persistent) {
    Requests::own().remove(*request);
    persistent->free_request();
    *request = handles.request_null;
    return MPI_SUCCESS;
  }
  NativeRequest forgotten;
  if (runtime && Requests::own().watching()) Requests::own().unwatch(*request, &forgotten);
  const auto report = [](MPI_Request* like, MPI_Status*) {
    const int code = next_calls.Request_free(like);
    *like = handles.request_null;
    return code;
  };
  return with_callbacks(MPI_STATUS_IGNORE, report,
                        [&] { return next_calls.Request_free(request); });
}

int Cancel(bool, MPI_Request* request) {
  Runtime* runtime = Runtime::active();
  if (runtime) InlineCall::own().hand_over();
  if (runtime && Requests::own().existing() > 0)
    if (const auto operation = Requests::own().find(*request))
      return call_error_handler(*operation, MPI_ERR_REQUEST);
  if (runtime && known_transfers.load() > 0) Transfers::own().cancelled(*request);
  const auto report = [](MPI_Request* like, MPI_Status*) { return next_calls.Cancel(like); };
  return with_callbacks(MPI_STATUS_IGNORE, report, [&] { return next_calls.Cancel(request); });
}

int Type_free(bool, MPI_Datatype* type) {
  return free_after_use(type, handles.datatype_null, +next_calls.Type_free,
                        &CollectiveOperation::uses_type);
}

int Op_free(bool, MPI_Op* op) {
  return free_after_use(op, handles.op_null, +next_calls.Op_free, &CollectiveOperation::uses_op);
}

}  // namespace object
}  // namespace weft::interpose
