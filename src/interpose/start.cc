// The start of a collective: normalise, choose, build, submit; or leave it to the library.
#include "base/clock.h"
#include "base/log.h"
#include "coll/algorithm.h"
#include "interpose/generated/library_calls.h"
#include "interpose/hooks.h"
#include "interpose/runtime.h"
#include "schedule/verify.h"
#include "transport/mpi/handles.h"

namespace weft::interpose {
namespace {

CallId call_id(Kind kind) {
  switch (kind) {
    case Kind::bcast:
      return CallId::Ibcast;
    case Kind::reduce:
      return CallId::Ireduce;
    case Kind::allreduce:
      return CallId::Iallreduce;
    case Kind::allgather:
      return CallId::Iallgather;
    case Kind::alltoall:
      return CallId::Ialltoall;
    case Kind::scan:
      return CallId::Iscan;
    default:
      return CallId::Ibarrier;
  }
}

// Set where start() declines, read by passed_on() of the same wrapper.
thread_local Reason declined_for = Reason::engine_native;

bool decline(Reason reason) {
  declined_for = reason;
  return false;
}

// Layouts of predefined types, which never change; asked of the library once per thread and type.
struct KnownType {
  MPI_Datatype type;
  Layout layout;
};
thread_local std::array<KnownType, 4> known_types{};
thread_local unsigned next_known = 0;

Layout ask_layout(MPI_Datatype type) {
  int size = 0;
  MPI_Aint lb = 0, extent = 0, true_lb = 0, true_extent = 0;
  library_calls.Type_size(type, &size);
  library_calls.Type_get_extent(type, &lb, &extent);
  library_calls.Type_get_true_extent(type, &true_lb, &true_extent);
  int integers = 0, addresses = 0, datatypes = 0, combiner = 0;
  library_calls.Type_get_envelope(type, &integers, &addresses, &datatypes, &combiner);
  const bool plain = combiner == MPI_COMBINER_NAMED && extent == size;
  const Layout layout{0, size, extent, true_lb, true_extent, plain};
  if (combiner == MPI_COMBINER_NAMED)
    known_types[next_known++ % known_types.size()] = {type, layout};
  return layout;
}

Layout layout_of(MPI_Datatype type, int count) {
  for (const KnownType& known : known_types) {
    if (known.type != type || known.layout.size == 0) continue;
    Layout layout = known.layout;
    layout.count = count;
    return layout;
  }
  Layout layout = ask_layout(type);
  layout.count = count;
  return layout;
}

// Both buffers are one, which no collective allows where both of them count.
bool aliased(const Call& call, const Communicator& communicator) {
  if (call.kind == Kind::bcast || call.sendbuf == nullptr || call.recvcount == 0) return false;
  if (call.kind == Kind::reduce && communicator.rank != call.root) return false;
  return call.sendbuf == call.recvbuf;
}

// What the library would refuse is left to the library, which says so in its own way.
bool arguments_look_right(const Call& call, const Communicator& communicator) {
  if (call.kind == Kind::barrier) return true;
  if (call.recvcount < 0 || call.recvtype == handles.datatype_null) return false;
  if (call.root < 0 || call.root >= communicator.size) return false;
  if (reduces(call.kind) && call.op == handles.op_null) return false;
  if (aliased(call, communicator)) return false;
  const bool own_send_side = call.kind == Kind::allgather || call.kind == Kind::alltoall;
  if (!own_send_side || call.sendbuf == MPI_IN_PLACE) return true;
  return call.sendcount >= 0 && call.sendtype != handles.datatype_null;
}

Shape shape_of(const Call& call, const Communicator& communicator) {
  Shape shape;
  shape.kind = call.kind;
  shape.rank = communicator.rank;
  shape.size = communicator.size;
  shape.root = call.root;
  if (call.kind == Kind::barrier) return shape;
  shape.in_place = call.kind != Kind::bcast && call.sendbuf == MPI_IN_PLACE;
  shape.recv = layout_of(call.recvtype, call.recvcount);
  const bool own_send_side = call.kind == Kind::allgather || call.kind == Kind::alltoall;
  shape.send =
      own_send_side && !shape.in_place ? layout_of(call.sendtype, call.sendcount) : shape.recv;
  if (reduces(call.kind)) {
    int commutes = 0;
    library_calls.Op_commutative(call.op, &commutes);
    shape.commutative = commutes != 0;
  }
  return shape;
}

std::int64_t total_bytes(const Shape& shape) {
  const bool per_block = shape.kind == Kind::allgather || shape.kind == Kind::alltoall;
  return shape.kind == Kind::barrier ? 0 : shape.recv.bytes() * (per_block ? shape.size : 1);
}

// The schedule of this rank; in debug builds those of all ranks are built and verified together.
Schedule built(const Algorithm& algorithm, const Shape& shape) {
#ifndef NDEBUG
  std::vector<Schedule> of_all_ranks;
  Shape other = shape;
  for (other.rank = 0; other.rank < shape.size; ++other.rank) {
    of_all_ranks.push_back(build(algorithm, other));
  }
  if (const auto verified = verify(of_all_ranks); !verified) {
    say("wrong schedule: " + verified.error().message);
    std::abort();
  }
#endif
  return build(algorithm, shape);
}

std::shared_ptr<const Schedule> schedule_for(Communicator& communicator, const Shape& shape,
                                             const Choice& choice) {
  static const char library_blocking = 0, library_nonblocking = 0;
  if (choice.algorithm)
    return communicator.schedule(shape, choice.algorithm,
                                 [&] { return built(*choice.algorithm, shape); });
  if (choice.engine == Engine::tcc)
    return communicator.schedule(shape, &library_blocking,
                                 [&] { return build_library(shape, StepKind::library_blocking); });
  return communicator.schedule(shape, &library_nonblocking,
                               [&] { return build_library(shape, StepKind::library_nonblocking); });
}

// A hand-over costs more than a short call. Where no other rank waits for this rank's progress
// and the message is short enough to have left with the first round, the thread sleeps on.
bool worth_the_thread(Engine engine, const Schedule& schedule) {
  constexpr std::int64_t kLeavesAtOnce = 8 * 1024;
  if (engine == Engine::function) return false;
  return schedule.sends_after_first_round || total_bytes(schedule.shape) > kLeavesAtOnce;
}

void submit(Runtime& runtime, Engine engine, std::shared_ptr<CollectiveOperation> operation) {
  if (engine == Engine::tcc) {
    operation->communicator().worker->submit(operation);
    return;
  }
  if (operation->advance()) return;
  const bool thread = worth_the_thread(engine, operation->schedule());
  runtime.progress.submit(std::move(operation), thread);
}

}  // namespace

bool start(const Call& call, MPI_Request* request, int* code) {
  Runtime* runtime = Runtime::active();
  if (!runtime || !request) return decline(Reason::engine_native);
  Communicator* communicator = runtime->communicators.find(call.comm);
  if (!communicator)
    return decline(runtime->config.engine == Engine::native ? Reason::engine_native
                                                            : Reason::communicator);
  Engine asked = runtime->engine_for(*communicator);
  if (asked == Engine::native) return decline(Reason::engine_native);
  if (!arguments_look_right(call, *communicator)) return decline(Reason::arguments);

  const std::int64_t entered = runtime->observing() ? now_ns() : 0;
  const Shape shape = shape_of(call, *communicator);
  const std::int64_t bytes = total_bytes(shape);
  if (bytes == 0 && call.kind != Kind::barrier) return decline(Reason::empty);
  if (bytes > INT32_MAX) return decline(Reason::large);
  Choice choice = choose(runtime->config, runtime->library, asked, shape);
  if (choice.engine == Engine::native) return decline(Reason::rule);
  if (!runtime->threads_allowed())
    choice = choose(runtime->config, runtime->library, Engine::function, shape);

  auto operation = std::make_shared<CollectiveOperation>(
      call_id(call.kind), call, communicator->shared_from_this(),
      schedule_for(*communicator, shape, choice),
      runtime->tag_for(communicator->sequence.fetch_add(1)));
  *code = operation->has_memory() ? operation->make_request(operation) : MPI_ERR_NO_MEM;
  if (*code != MPI_SUCCESS) {
    library_calls.Comm_call_errhandler(call.comm, *code);
    return true;
  }
  *request = operation->request();
  runtime->requests.add(operation);
  runtime->summary.handled(operation->id(), bytes);
  if (runtime->observing()) operation->times.started = entered;
  submit(*runtime, choice.engine, std::move(operation));
  if (auto* track = runtime->application_track())
    track->span(call_name(call_id(call.kind)), entered, now_ns());
  return true;
}

void passed_on(CallId id, MPI_Request* request, int code) {
  Runtime* runtime = Runtime::active();
  if (!runtime || code != MPI_SUCCESS) return;
  const bool by_the_call = call_reason(id)[0] != '\0';
  runtime->summary.passed_on(id, by_the_call ? Reason::of_the_call : declined_for);
  const bool non_blocking = call_name(id)[4] == 'I';  // not a persistent initialisation
  if (runtime->observing() && non_blocking)
    runtime->requests.watch(*request, {id, {now_ns(), 0, 0}});
}

}  // namespace weft::interpose
