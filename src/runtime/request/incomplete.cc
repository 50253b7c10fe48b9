// Ends collectives that the application has left incomplete. Even an erroneous program must not
// hang in MPI_Finalize, and must not keep other ranks from ending.
#include "runtime/request/incomplete.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/request/persistent.h"
#include "runtime/request/requests.h"

namespace weft {
namespace {

constexpr std::int64_t kPatience_ns = 3'000'000'000;

using Operations = std::vector<std::shared_ptr<CollectiveOperation>>;

bool all_done(const Operations& operations) {
  return std::all_of(operations.begin(), operations.end(), [](auto& one) { return one->done(); });
}

// Returns how many collectives of each MPI function there are, for instance "MPI_Iallreduce (1000),
// MPI_Ibarrier (1)".
std::string by_name(const Operations& operations) {
  std::map<std::string, int> counts;
  for (const auto& operation : operations) ++counts[call_name(operation->id())];
  std::string text;
  for (const auto& [name, count] : counts)
    text += (text.empty() ? "" : ", ") + name + " (" + std::to_string(count) + ")";
  return text;
}

std::int64_t rounds_done(const Operations& operations) {
  std::int64_t rounds = 0;
  for (const auto& operation : operations) rounds += operation->round() + operation->done();
  return rounds;
}

// Advances these collectives until all are complete, or none has made progress for a while.
void bring_forward(Runtime& runtime, const Operations& operations) {
  for (auto& operation : operations)
    if (auto* persistent = operation->persistent()) persistent->hand_over();
  std::int64_t before = -1, since_ns = 0;
  while (!all_done(operations)) {
    runtime.progress.poll();
    if (const auto rounds = rounds_done(operations); rounds != before) {
      before = rounds;
      since_ns = now_ns();
    }
    if (now_ns() - since_ns > kPatience_ns) return;
    // Sleeping leaves the core to worker threads.
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

bool in_library(CollectiveOperation& operation) {
  const auto& worker = operation.communicator().worker;
  return !operation.done() && worker && !worker->is_idle();
}

Operations under_way(Runtime& runtime) {
  Operations operations = Requests::own().all();
  std::erase_if(operations, [](auto& one) { return !one->active(); });
  return operations;
}

std::ptrdiff_t busy_workers(Runtime& runtime) {
  const auto all = Communicators::own().all();
  const auto operations = Requests::own().all();
  return std::count_if(all.begin(), all.end(),
                       [](auto& one) { return one->worker && !one->worker->is_idle(); }) +
         std::count_if(operations.begin(), operations.end(),
                       [](auto& one) { return in_library(*one); });
}

}  // namespace

void let_workers_end(Runtime& runtime) {
  std::ptrdiff_t before = -1;
  std::int64_t since_ns = 0;
  while (const auto busy = busy_workers(runtime)) {
    runtime.progress.poll();
    if (busy != before) {
      before = busy;
      since_ns = now_ns();
    }
    if (now_ns() - since_ns > kPatience_ns) return;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void let_worker_end(Runtime& runtime, const Communicator& communicator) {
  if (!communicator.wants_worker() || !communicator.worker) return;
  runtime.progress.drive_until([&] { return communicator.worker->is_idle(); },
                               [] { sched_yield(); });
}

void finish_before_blocking(Runtime& runtime, MPI_Comm comm) {
  if (!runtime.only_callers_advance()) return;
  Operations operations = under_way(runtime);
  std::erase_if(operations, [&](auto& one) { return one->communicator().user != comm; });
  bring_forward(runtime, operations);
}

// Waits until all ranks have arrived here. They have then started the same exchanges of times for
// engine auto, so that these can be completed.
void finish_comparisons(Runtime& runtime) {
  const Communicator* world = Communicators::own().find(handles.comm_world);
  MPI_Request all_here = handles.request_null;
  if (world) library_calls.Ibarrier(world->internal, &all_here);
  for (int here = world ? 0 : 1; !here;) {
    runtime.progress.poll();
    if (library_calls.Test(&all_here, &here, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
    std::this_thread::yield();
  }
  const std::int64_t began_ns = now_ns();
  while (runtime.progress.under_way() > 0 && now_ns() - began_ns < kPatience_ns) {
    runtime.progress.poll();
    std::this_thread::yield();
  }
}

void abort_job(const std::string& why) {
  say(why);
  std::fflush(nullptr);
  // Hydra (MPICH's launcher) discards the output of an aborted job that it has not read yet, so
  // this rank waits before it aborts.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  // Hydra sometimes does not notice a mere exit: in one of two hundred jobs it left the other ranks
  // in MPI_Finalize.
  library_calls.Abort(handles.comm_world, 1);
  std::_Exit(1);
}

void settle_incomplete(Runtime& runtime, int rank) {
  const Operations operations = under_way(runtime);
  if (operations.empty()) return;
  const std::string who = "rank " + std::to_string(rank) + ": ";
  say(who + "MPI_Finalize while " + std::to_string(operations.size()) +
      " collectives have not been completed by MPI_Wait or MPI_Test: " + by_name(operations));
  bring_forward(runtime, operations);
  if (std::none_of(operations.begin(), operations.end(), [](auto& o) { return in_library(*o); }))
    return;
  abort_job(who +
            "a thread is still inside one of them, so that MPI cannot be finalised: the program "
            "ends");
}

}  // namespace weft
