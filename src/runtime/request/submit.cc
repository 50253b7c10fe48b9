// Passes a collective to the thread that carries it out, after the calling thread has advanced it
// as far as possible.
#include "runtime/request/submit.h"

#include "base/clock.h"
#include "coll/algorithm_names.h"
#include "runtime/call/library_support.h"
#include "runtime/call/shape.h"
#include "select/split_rule.h"

namespace weft {

// Returns whether the progress thread should continue a collective. Passing it to the thread takes
// longer than a short collective. The thread is therefore not used if no other rank waits for this
// rank after the first round, and the message is short enough to have left in that round.
bool worth_the_thread(Engine engine, const Schedule& schedule) {
  constexpr std::int64_t kLeavesAtOnce = 8 * 1024;
  if (engine == Engine::function) return false;
  return schedule.sends_after_first_round || local_bytes(schedule.shape) > kLeavesAtOnce;
}

namespace {

// Returns whether the progress thread should continue the collective. It should if the collective
// first tries to use the other ranks' buffers in place: it then waits for all other ranks, and is
// rarely complete in the start call. It should, too, if the data must first come from GPU memory.
bool wants_thread(Engine engine, const Operation& operation) {
  if (operation.tries_direct() || operation.waits_for_data()) return engine != Engine::function;
  return worth_the_thread(engine, operation.schedule());
}

// Carries out the first rounds in the start call, for a limited time. It is for trees that are
// split between the calling threads and the progress thread. In these rounds other ranks' messages
// are on their way, and this rank's core is not computing. Returns true if the collective is then
// complete.
[[gnu::noinline]] bool ends_at_start(Runtime& runtime, Engine engine,
                                     CollectiveOperation& operation) {
  const Schedule& schedule = operation.schedule();
  if (!has_progress_thread(engine) || operation.round() >= schedule.rounds_at_start) return false;
  const std::int64_t until_ns = now_ns() + most_time_at_start_ns(schedule);
  while (operation.round() < schedule.rounds_at_start && now_ns() < until_ns) {
    runtime.progress.poll();
    runtime.progress.yield_core();
    if (operation.advance()) return true;
  }
  return false;
}

// Waits for the input from GPU memory, so that this rank's first messages leave in the start call.
// Otherwise other ranks might wait until this rank's next MPI call. Returns true if the collective
// is then complete.
[[gnu::noinline]] bool starts_at_once(CollectiveOperation& operation) {
  operation.wait_for_input();
  return operation.advance();
}

// Leaves the operation to the core agent, and returns true. Returns false if the rank itself must
// carry it out; if it leads its node there, its own thread may be the agent.
bool leave_to_agent(Runtime& runtime, const std::shared_ptr<CollectiveOperation>& operation) {
  if (!runtime.progress.has_mailbox()) return false;
  const Schedule& schedule = operation->schedule();
  if (runtime.serves_as_agent() && schedule.program.empty() && schedule.shape.nodes &&
      has_one_leader(algorithm_of(schedule)))
    runtime.summary.led_by_agent();
  const auto work = operation->work();
  if (!work || !runtime.progress.leave_to_agent(operation, *work)) return false;
  runtime.summary.left_to_agent();
  return true;
}

// Passes a collective that is carried out by the MPI library as a whole to the communicator's
// worker thread. Such collectives must start in the same order on all ranks. Therefore even those
// that the progress thread advances are started from the worker's queue. Returns false if there is
// no worker.
bool leave_to_worker(Runtime& runtime, Engine engine,
                     const std::shared_ptr<CollectiveOperation>& operation) {
  Worker* const worker = operation->communicator().worker.get();
  if (!worker || (runtime.only_callers_advance() && engine != Engine::tcc)) return false;
  if (runtime.only_callers_advance())
    // After the progress threads have stopped, the next application thread that waits carries the
    // collective out instead of the worker.
    runtime.progress.submit(operation, false);
  else if (engine == Engine::tcc)
    worker->submit(operation);
  else
    worker->begin(operation, [&runtime](std::shared_ptr<Operation> begun) {
      runtime.progress.submit(std::move(begun), true);
    });
  return true;
}

// Returns whether the MPI library may need copies of the call's buffers, for which the schedule
// must know where the data lie. The root of an intercommunicator has no rank.
bool may_be_on_device(const Call& call, const Communicator& knows) {
  const bool has_shape =
      knows.rank >= 0 && (!is_neighborhood(call.kind) || knows.neighbors.has_value());
  return may_need_copies(call.kind) && has_shape && arguments_look_right(call, knows);
}

}  // namespace

void submit(Runtime& runtime, Engine engine, std::shared_ptr<CollectiveOperation> operation) {
  const bool whole = engine == Engine::tcc || engine == Engine::assist;
  if (whole && leave_to_worker(runtime, engine, operation)) return;
  if (operation->advance()) return;
  const bool split = operation->schedule().is_split();
  if (split && ends_at_start(runtime, engine, *operation)) return;
  const bool left = split && operation->is_at_callers_part();
  const bool thread = !left && wants_thread(engine, *operation);
  if (thread && engine == Engine::agent && leave_to_agent(runtime, operation)) return;
  if (!thread && operation->waits_for_data()) [[unlikely]]
    if (starts_at_once(*operation)) return;
  runtime.progress.submit(std::move(operation), thread);
}

void carry_to_its_end(Runtime& runtime, const std::shared_ptr<CollectiveOperation>& operation) {
  if (operation->advance()) return;
  runtime.progress.submit(operation, false);
  runtime.progress.drive_until([&] { return operation->done(); }, [&] { operation->wait_done(); });
}

std::shared_ptr<const Schedule> library_schedule(const Call& call, const Communicator& knows) {
  Shape shape;
  shape.kind = call.kind;
  shape.rank = knows.rank, shape.size = knows.size, shape.root = call.root;
  shape.send_blocks.resize(array_length(call, knows, Direction::send));
  shape.recv_blocks.resize(array_length(call, knows, Direction::recv));
  if (may_be_on_device(call, knows)) shape = shape_of(call, knows);
  return std::make_shared<const Schedule>(build_library(shape, StepKind::library_nonblocking));
}

std::shared_ptr<CollectiveOperation> library_operation(CallId id, const Call& call,
                                                       const Communicator& knows) {
  auto users = std::make_shared<Communicator>(call.comm, InternalCommunicator{call.comm},
                                              knows.rank, knows.size);
  return std::make_shared<CollectiveOperation>(id, call, users, library_schedule(call, knows),
                                               nullptr, 0);
}

}  // namespace weft
