// Implements Scheduler. A core either has a running thread, whose end or next interruption is
// planned, or lets the waiting threads poll one after the other. In the latter case only the first
// poll that finds something is planned.
#include "sim/scheduler.h"

#include <algorithm>
#include <cmath>

namespace weft::sim {
namespace {

std::uint64_t turns_until(double span_us, double turn_us) {
  return span_us <= 0 ? 0 : static_cast<std::uint64_t>(std::ceil(span_us / turn_us - 1e-9));
}

}  // namespace

Scheduler::Scheduler(Events& events, const Machine& machine, int nodes, Threads& threads)
    : events_(events),
      machine_(machine),
      host_(threads),
      memory_(events, nodes * machine.numa_nodes, machine.core_copy, machine.numa_copy),
      cores_(static_cast<std::size_t>(nodes) * static_cast<std::size_t>(machine.cores)) {}

int Scheduler::add(int core, bool asleep) {
  Thread thread;
  thread.core = core;
  thread.state = asleep ? State::sleeping : State::ready;
  threads_.push_back(thread);
  const int id = static_cast<int>(threads_.size()) - 1;
  if (!asleep) cores_[static_cast<std::size_t>(core)].waiting.push_back(id);
  return id;
}

void Scheduler::begin() {
  for (std::size_t core = 0; core < cores_.size(); ++core) {
    if (!cores_[core].waiting.empty()) cores_[core].last = cores_[core].waiting.front();
    plan_turn(static_cast<int>(core), 0);
  }
}

int Scheduler::domain_of(int core) const {
  const int node = core / machine_.cores, here = core % machine_.cores;
  return node * machine_.numa_nodes +
         static_cast<int>(static_cast<std::int64_t>(here) * machine_.numa_nodes / machine_.cores);
}

void Scheduler::plan(int core, double at_us) {
  events_.plan(at_us, Event::Kind::core, core, ++cores_[static_cast<std::size_t>(core)].version);
}

// Returns how long a thread has the core to poll once, including the switch to it if several
// threads wait.
double Scheduler::turn_us(const Core& core) const {
  return machine_.poll_us + (core.waiting.size() > 1 ? machine_.switch_us : 0);
}

// Plans the first time at which a waiting thread has work, or at which a poll finds something.
void Scheduler::plan_turn(int index, double now_us) {
  Core& core = cores_[static_cast<std::size_t>(index)];
  ++core.version;
  if (core.waiting.empty()) return;
  const std::size_t round = core.waiting.size();
  if (round == 1 && core.last != core.waiting[0]) {
    core.last = core.waiting[0];
    core.since_us = std::max(core.since_us, now_us) + machine_.switch_us;
    ++switches_;
  }
  const double turn = turn_us(core);
  double best_us = kNever;
  for (std::size_t i = 0; i < round; ++i) {
    const Thread& thread = threads_[static_cast<std::size_t>(core.waiting[i])];
    const bool polls = thread.state == State::polling;
    const double look_us = polls ? std::max(thread.look_at_us, thread.not_before_us) : now_us;
    if (look_us == kNever) continue;
    // A thread polls at the end of its time on the core. Work begins when the core has switched to
    // the thread.
    const double into = polls ? turn : turn - machine_.poll_us;
    std::uint64_t turns = turn > 0 ? turns_until(look_us - core.since_us - into, turn) : i;
    if (turns < i) turns = i;
    turns += (i + round - turns % round) % round;
    const double at_us =
        std::max(core.since_us + static_cast<double>(turns) * turn + into, look_us);
    if (at_us >= best_us) continue;
    best_us = at_us;
    core.turns = turns;
  }
  if (best_us < kNever)
    events_.plan(std::max(best_us, now_us), Event::Kind::core, index, core.version);
}

// Accounts for the polls of waiting threads that are over at `now_us`.
void Scheduler::settle(Core& core, double now_us) {
  const double turn = turn_us(core);
  if (core.waiting.empty() || turn <= 0 || now_us <= core.since_us) return;
  const auto over = static_cast<std::uint64_t>((now_us - core.since_us) / turn);
  const std::size_t round = core.waiting.size();
  if (round > 1) switches_ += over;
  core.since_us += static_cast<double>(over) * turn;
  std::rotate(core.waiting.begin(),
              core.waiting.begin() + static_cast<std::ptrdiff_t>(over % round), core.waiting.end());
}

void Scheduler::join(int id, double now_us) {
  Thread& thread = threads_[static_cast<std::size_t>(id)];
  Core& core = core_of(id);
  thread.state = State::ready;
  ++thread.version;
  host_.seen(id, Doing::ready, now_us);
  if (core.running >= 0) {
    core.waiting.push_back(id);
    const Thread& running = threads_[static_cast<std::size_t>(core.running)];
    // If another thread was already waiting for the core, an event is already planned, which
    // happens at the end of the running thread's time slice or before.
    if (core.waiting.size() > 1) return;
    const double until_us = std::max(now_us, core.slice_end_us);
    if (running.state == State::spinning)
      plan(thread.core,
           std::min(std::max(now_us, running.look_at_us) + machine_.poll_us, until_us));
    else if (running.copies || core.run_from_us + running.left > until_us)
      plan(thread.core, until_us);
    return;
  }
  if (core.waiting.empty())
    core.since_us = now_us;
  else
    settle(core, now_us);
  core.waiting.push_back(id);
  plan_turn(thread.core, now_us);
}

void Scheduler::take_turn(int index, double now_us) {
  Core& core = cores_[static_cast<std::size_t>(index)];
  const std::size_t round = core.waiting.size();
  if (round > 1) switches_ += core.turns + 1;
  std::rotate(core.waiting.begin(),
              core.waiting.begin() + static_cast<std::ptrdiff_t>(core.turns % round),
              core.waiting.end());
  core.running = core.last = core.waiting.front();
  core.waiting.erase(core.waiting.begin());
  core.slice_end_us = now_us + machine_.slice_us;
  resume(index, now_us);
}

// Lets the core's running thread continue, and plans when it ends or is interrupted.
void Scheduler::resume(int index, double now_us) {
  for (;;) {
    Core& core = cores_[static_cast<std::size_t>(index)];
    const int id = core.running;
    Thread& thread = threads_[static_cast<std::size_t>(id)];
    thread.state = State::running;
    if (!core.waiting.empty() && now_us >= core.slice_end_us) {
      leave(index, State::ready, now_us);
      return;
    }
    if (thread.left <= 0) {
      const Demand demand = host_.next(id, now_us);
      if (give_up(index, demand, now_us)) return;
      thread.left = demand.amount;
      thread.copies = demand.kind == Demand::Kind::copy;
    }
    if (thread.left > 0) {
      run(index, now_us);
      return;
    }
  }
}

// Applies a demand of the running thread. Returns true if the thread gives up its core by it, false
// if it continues to run.
bool Scheduler::give_up(int index, const Demand& demand, double now_us) {
  Core& core = cores_[static_cast<std::size_t>(index)];
  const int id = core.running;
  Thread& thread = threads_[static_cast<std::size_t>(id)];
  thread.look_at_us = demand.look_at_us;
  thread.not_before_us = demand.not_before_us;
  switch (demand.kind) {
    case Demand::Kind::work:
    case Demand::Kind::copy:
      return false;
    case Demand::Kind::poll:
      leave(index, State::polling, now_us);
      return true;
    case Demand::Kind::spin: {
      thread.state = State::spinning;
      host_.seen(id, Doing::polling, now_us);
      const double look_us = std::max(now_us, demand.look_at_us) + machine_.poll_us;
      const double until_us = core.waiting.empty() ? kNever : core.slice_end_us;
      ++core.version;
      if (std::min(look_us, until_us) < kNever)
        events_.plan(std::min(look_us, until_us), Event::Kind::core, index, core.version);
      return true;
    }
    case Demand::Kind::nap:
      thread.nap_from_us = now_us;
      thread.nap_us = demand.amount;
      leave(index, State::napping, now_us);
      plan_nap(id, now_us);
      return true;
    case Demand::Kind::sleep:
      leave(index, State::sleeping, now_us);
      return true;
    case Demand::Kind::over:
      leave(index, State::over, now_us);
      return true;
  }
  return true;
}

void Scheduler::leave(int index, State state, double now_us) {
  Core& core = cores_[static_cast<std::size_t>(index)];
  const int id = core.running;
  threads_[static_cast<std::size_t>(id)].state = state;
  core.running = -1;
  core.since_us = now_us;
  const bool waits = state == State::ready || state == State::polling;
  if (waits) core.waiting.push_back(id);
  const Doing waiting = state == State::ready ? Doing::ready : Doing::polling;
  host_.seen(id, waits ? waiting : Doing::asleep, now_us);
  plan_turn(index, now_us);
}

void Scheduler::run(int index, double now_us) {
  Core& core = cores_[static_cast<std::size_t>(index)];
  const int id = core.running;
  Thread& thread = threads_[static_cast<std::size_t>(id)];
  host_.seen(id, Doing::working, now_us);
  core.run_from_us = now_us;
  const double until_us = core.waiting.empty() ? kNever : core.slice_end_us;
  if (!thread.copies) {
    plan(index, std::min(now_us + thread.left, until_us));
    return;
  }
  ++core.version;
  if (until_us < kNever) events_.plan(until_us, Event::Kind::core, index, core.version);
  memory_.begin(domain_of(index), id, thread.left, now_us);
}

void Scheduler::core_event(int index, double now_us) {
  Core& core = cores_[static_cast<std::size_t>(index)];
  if (core.running < 0) {
    take_turn(index, now_us);
    return;
  }
  Thread& thread = threads_[static_cast<std::size_t>(core.running)];
  if (thread.state == State::spinning) {
    resume(index, now_us);
    return;
  }
  if (thread.copies)
    thread.left = memory_.withdraw(domain_of(index), core.running, now_us);
  else
    thread.left = std::max(0.0, thread.left - (now_us - core.run_from_us));
  constexpr double kNothing = 1e-6;
  if (thread.left < kNothing) thread.left = 0;
  resume(index, now_us);
}

void Scheduler::notify(int id, double at_us) {
  Thread& thread = threads_[static_cast<std::size_t>(id)];
  thread.look_at_us = std::min(thread.look_at_us, at_us);
  Core& core = core_of(id);
  if (thread.state == State::polling && core.running < 0) {
    plan_turn(thread.core, now_us_);
  } else if (thread.state == State::spinning && core.running == id) {
    const double until_us = core.waiting.empty() ? kNever : core.slice_end_us;
    plan(thread.core, std::min(at_us + machine_.poll_us, until_us));
  } else if (thread.state == State::napping) {
    plan_nap(id, at_us);
  }
}

void Scheduler::plan_nap(int id, double now_us) {
  Thread& thread = threads_[static_cast<std::size_t>(id)];
  const double look_us = std::max(thread.look_at_us, now_us);
  if (thread.look_at_us == kNever) return;
  const double nap_us = std::max(thread.nap_us, machine_.poll_us);
  const double naps = std::max(1.0, std::ceil((look_us - thread.nap_from_us) / nap_us));
  wake(id, thread.nap_from_us + naps * nap_us);
}

void Scheduler::wake(int id, double at_us) {
  const Thread& thread = threads_[static_cast<std::size_t>(id)];
  events_.plan(at_us, Event::Kind::wake, id, thread.version);
}

void Scheduler::happens(const Event& event) {
  now_us_ = event.at_us;
  if (event.kind == Event::Kind::core) {
    if (event.version == cores_[static_cast<std::size_t>(event.index)].version)
      core_event(event.index, event.at_us);
    return;
  }
  if (event.kind == Event::Kind::copy) {
    const int id = memory_.ended(event.index, event.version, event.at_us);
    if (id < 0) return;
    threads_[static_cast<std::size_t>(id)].left = 0;
    resume(threads_[static_cast<std::size_t>(id)].core, event.at_us);
    return;
  }
  Thread& thread = threads_[static_cast<std::size_t>(event.index)];
  const bool asleep = thread.state == State::sleeping || thread.state == State::napping;
  if (asleep && event.version == thread.version) join(event.index, event.at_us);
}

}  // namespace weft::sim
