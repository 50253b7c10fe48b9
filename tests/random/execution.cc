// Carries out the steps of a random program and checks its results.
#include "execution.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <thread>

namespace random_programs {
namespace {

using conformance::Collective;
using conformance::Form;
using conformance::Place;

int value(unsigned salt, int sender, int index) {
  return static_cast<int>(conformance::mixed_number(salt, sender, index) % 1000000);
}

// Returns whether the start of the step neither blocks nor needs the other ranks, so that the order
// of starts on different communicators is free.
bool starts_freely(const Step& step) {
  const bool nonblocking = step.form == Form::nonblocking && !step.frees_comm;
  return nonblocking && (step.action == Action::collective || step.action == Action::message);
}

void pause(int microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

// Types and operators that only this call uses. They are freed while the call may be incomplete.
class BorrowedHandles {
 public:
  BorrowedHandles(const Step& step, Collective* collective) {
    auto& arguments = collective->arguments();
    // Predefined operators do not support duplicates of predefined types.
    const bool reduces = conformance::is_reduction(step.spec.kind);
    if (step.frees_types && !(reduces && !collective->operation().function)) {
      for (auto* list : {&arguments.send_types, &arguments.receive_types}) {
        for (auto& type : *list) {
          MPI_Type_dup(type, &type);
          types_.push_back(type);
        }
      }
    }
    if (!step.frees_operator || !reduces) return;
    const auto& operation = collective->operation();
    if (!operation.function) return;
    MPI_Op_create(operation.function, operation.commutes, &op_);
    arguments.op = op_;
  }
  void free() {
    for (auto& type : types_) MPI_Type_free(&type);
    if (op_ != MPI_OP_NULL) MPI_Op_free(&op_);
  }

 private:
  std::vector<MPI_Datatype> types_;
  MPI_Op op_ = MPI_OP_NULL;
};

}  // namespace

void Findings::add(const Step& step, const std::string& what) {
  if (++count_ > 5) return;
  std::printf("random: seed %llu, rank %d, %s: %s\n", static_cast<unsigned long long>(seed_), rank_,
              text(step).c_str(), what.c_str());
  std::fflush(stdout);
}

Execution::Execution(std::uint64_t seed, int thread, const Communicators& comms,
                     const conformance::TypeCases& types, const Limits& limits, Findings* findings)
    : random_(seed * 31 + comms.at(world)->rank * 1009 + thread * 101 + 7),
      comms_(comms),
      types_(types),
      without_(limits.without),
      findings_(findings),
      thread_(thread) {}

void Execution::run(const std::vector<Step>& steps) {
  Burst burst;
  for (const Step& step : steps) {
    if (step.thread != thread_) continue;
    if (starts_freely(step)) {
      burst.push_back(&step);
      continue;
    }
    start_all(burst);
    burst.clear();
    perform(step);
  }
  start_all(burst);
  complete_rest();
}

// Starts the steps in this rank's own order; on each communicator, it is the program's order.
void Execution::start_all(const Burst& burst) {
  std::map<int, Burst> queues;
  for (auto step = burst.rbegin(); step != burst.rend(); ++step) {
    queues[(*step)->comm].push_back(*step);
  }
  while (!queues.empty()) {
    auto queue = std::next(queues.begin(), random_.below(static_cast<int>(queues.size())));
    perform(*queue->second.back());
    queue->second.pop_back();
    if (queue->second.empty()) queues.erase(queue);
  }
}

void Execution::perform(const Step& step) {
  at_step[thread_].store(step.number, std::memory_order_relaxed);
  if (step.action == Action::complete) return complete_some();
  if (step.action == Action::restart) return restart(step);
  if (step.action == Action::rest) return pause(random_.below(60));
  const Place* place = comms_.at(step.comm);
  if (!place) return;
  if (step.action == Action::collective) start_collective(step, *place);
  if (step.action == Action::message) start_message(step, *place);
  if (step.action == Action::blocking) block(step, *place);
  if (step.action == Action::exchange) exchange(step, *place);
}

void Execution::start_collective(const Step& step, const Place& place) {
  operations_.emplace_back();
  Operation& made = operations_.back();
  made.step = &step;
  made.persistent = step.form == Form::persistent;
  made.starts_left = step.starts - 1;
  made.salt = step.salt;
  MPI_Comm copy = MPI_COMM_NULL;
  if (step.frees_comm) {
    MPI_Comm_dup(place.comm, &copy);
    made.own_place = std::make_unique<Place>(copy);
  }
  const Place& at = made.own_place ? *made.own_place : place;
  made.collective = std::make_unique<Collective>(step.spec, at, types_);
  fill(&made);
  BorrowedHandles borrowed(step, made.collective.get());
  made.collective->call(step.form, step.large, &made.request);
  borrowed.free();
  if (copy != MPI_COMM_NULL) MPI_Comm_free(&copy);
  if (made.persistent) MPI_Start(&made.request);
  made.active = true;
}

// Sends a message to the next rank and receives one from the previous rank.
void Execution::start_message(const Step& step, const Place& place) {
  const int size = place.size(), tag = step.number;
  for (bool receives : {true, false}) {
    operations_.emplace_back();
    Operation& made = operations_.back();
    made.step = &step;
    made.persistent = step.form == Form::persistent;
    made.starts_left = step.starts - 1;
    made.salt = step.salt;
    made.receives = receives;
    made.partner = (place.rank + (receives ? size - 1 : 1)) % size;
    made.data.resize(step.salt % 700);
    if (!receives) made.own_place = std::make_unique<Place>(place);
    fill(&made);
    int *at = made.data.data(), count = static_cast<int>(made.data.size());
    auto* request = &made.request;
    if (made.persistent) {
      if (receives) MPI_Recv_init(at, count, MPI_INT, made.partner, tag, place.comm, request);
      if (!receives) MPI_Send_init(at, count, MPI_INT, made.partner, tag, place.comm, request);
      MPI_Start(request);
    } else {
      if (receives) MPI_Irecv(at, count, MPI_INT, made.partner, tag, place.comm, request);
      if (!receives) MPI_Isend(at, count, MPI_INT, made.partner, tag, place.comm, request);
    }
    made.active = true;
  }
}

void Execution::block(const Step& step, const Place& place) {
  Collective collective(step.spec, place, types_);
  collective.fill(step.salt);
  collective.call(Form::blocking, step.large, nullptr);
  const std::string mistake = collective.mistake();
  if (!mistake.empty()) findings_->add(step, mistake);
}

void Execution::exchange(const Step& step, const Place& place) {
  int word = static_cast<int>(step.salt % 1000), got = word;
  const int tag = 1000 + step.number;
  if (place.rank > 0)
    MPI_Recv(&got, 1, MPI_INT, place.rank - 1, tag, place.comm, MPI_STATUS_IGNORE);
  if (place.rank + 1 < place.size()) MPI_Send(&word, 1, MPI_INT, place.rank + 1, tag, place.comm);
  if (got != word) findings_->add(step, "the message is wrong");
}

// The choice of requests depends on the steps only, so it is the same on all ranks.
void Execution::restart(const Step& step) {
  std::vector<Operation*> chosen;
  std::vector<MPI_Request> requests;
  for (auto& operation : operations_) {
    if (!operation.persistent || operation.starts_left == 0) continue;
    if (conformance::mixed_number(step.salt, operation.step->number) % 3 == 0) continue;
    if (operation.active) complete({&operation}, Completion::wait);
    --operation.starts_left;
    ++operation.salt;
    fill(&operation);
    chosen.push_back(&operation);
    requests.push_back(operation.request);
  }
  if (step.salt % 2 && !requests.empty()) {
    MPI_Startall(static_cast<int>(requests.size()), requests.data());
  } else {
    for (auto& request : requests) MPI_Start(&request);
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    chosen[i]->request = requests[i];
    chosen[i]->active = true;
  }
}

void Execution::fill(Operation* operation) {
  if (operation->collective) return operation->collective->fill(operation->salt);
  for (std::size_t i = 0; i < operation->data.size(); ++i) {
    const int rank = operation->receives ? 0 : operation->own_place->rank;
    operation->data[i] =
        operation->receives ? -1 : value(operation->salt, rank, static_cast<int>(i));
  }
}

void Execution::check(Operation* operation, const MPI_Status& status) {
  operation->active = false;
  const Step& step = *operation->step;
  if (!operation->persistent && operation->request != MPI_REQUEST_NULL)
    findings_->add(step, "the request is not MPI_REQUEST_NULL after its end");
  if (operation->persistent && operation->request == MPI_REQUEST_NULL)
    findings_->add(step, "the persistent request is MPI_REQUEST_NULL after its end");
  if (operation->collective) {
    const std::string mistake = operation->collective->mistake();
    if (!mistake.empty()) findings_->add(step, mistake);
    return;
  }
  if (!operation->receives) return;
  int count = -1;
  MPI_Get_count(&status, MPI_INT, &count);
  if (status.MPI_SOURCE != operation->partner || status.MPI_TAG != step.number ||
      count != static_cast<int>(operation->data.size()))
    findings_->add(step, "the status of the message is wrong: source " +
                             std::to_string(status.MPI_SOURCE) + ", tag " +
                             std::to_string(status.MPI_TAG) + ", " + std::to_string(count) +
                             " elements");
  for (int i = 0; i < count; ++i) {
    if (operation->data[i] == value(operation->salt, operation->partner, i)) continue;
    return findings_->add(step, "the message is wrong");
  }
}

void Execution::complete(const std::vector<Operation*>& chosen, Completion way) {
  std::vector<MPI_Request> requests;
  std::vector<Operation*> owners = chosen;
  const bool persistent =
      std::any_of(chosen.begin(), chosen.end(), [](const Operation* o) { return o->persistent; });
  if (way == Completion::testall && persistent && without_.count("testall-persistent"))
    way = Completion::test;
  if (way == Completion::waitall && persistent && without_.count("waitall-persistent"))
    way = Completion::wait;
  for (auto* operation : chosen) requests.push_back(operation->request);
  if (random_.once_in(4)) {
    owners.push_back(nullptr);
    requests.push_back(MPI_REQUEST_NULL);
  }
  std::vector<MPI_Status> statuses(requests.size());
  const auto done = random_programs::complete(way, &requests, &statuses);
  for (std::size_t i = 0; i < owners.size(); ++i) {
    if (owners[i]) owners[i]->request = requests[i];
  }
  for (int place : done) {
    if (owners[place]) check(owners[place], statuses[place]);
  }
  operations_.remove_if([](const Operation& o) { return !o.active && !o.persistent; });
}

std::vector<Execution::Operation*> Execution::active() {
  std::vector<Operation*> result;
  for (auto& operation : operations_) {
    if (operation.active) result.push_back(&operation);
  }
  return result;
}

void Execution::complete_some() {
  std::vector<Operation*> all = active(), chosen;
  for (std::size_t i = all.size(); i > 1; --i) {
    std::swap(all[i - 1], all[random_.below(static_cast<int>(i))]);
  }
  for (auto* operation : all) {
    if (random_.once_in(2)) chosen.push_back(operation);
  }
  complete(chosen, static_cast<Completion>(random_.below(kCompletions)));
}

void Execution::complete_rest() {
  at_step[thread_].store(-1, std::memory_order_relaxed);
  for (auto left = active(); !left.empty(); left = active()) {
    complete(left, static_cast<Completion>(random_.below(kCompletions)));
    // Tests without a pause would keep the core from the ranks for which they wait.
    if (random_.once_in(3)) pause(20);
  }
  for (auto& operation : operations_) MPI_Request_free(&operation.request);
  operations_.clear();
}

}  // namespace random_programs
