// Scheduler: runs threads on cores one after the other, as an operating system does. A thread runs
// until it gives up its core, or until its time slice is over and others want the core. Polls are
// not events: a thread that finds nothing and yields gets the core again and again, and the time of
// its next poll that matters follows from its place among the waiting threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/events.h"
#include "sim/machine.h"
#include "sim/memory.h"

namespace weft::sim {

// The next thing that a thread does with its core.
struct Demand {
  enum class Kind : std::uint8_t {
    work,   // computes for `amount` microseconds
    copy,   // copies `amount` bytes
    poll,   // waits to be notified, and yields after each poll
    spin,   // waits to be notified, and keeps its core
    nap,    // waits to be notified, and sleeps `amount` microseconds after each poll
    sleep,  // sleeps until it is woken
    over,
  };
  Kind kind = Kind::over;
  double amount = 0;
  double look_at_us = kNever;  // time from which a poll will find something
  double not_before_us = 0;    // with poll: the thread is busy until then
};

// The state of a thread as the trace shows it.
enum class Doing : std::uint8_t { working, polling, asleep, ready };

class Threads {
 public:
  virtual ~Threads() = default;
  // Returns the thread's next demand. It is called when the thread has its core and has completed
  // its last demand.
  virtual Demand next(int thread, double now_us) = 0;
  virtual void seen(int, Doing, double) {}
};

class Scheduler {
 public:
  // nodes: the number of nodes; cores are numbered over all of them.
  Scheduler(Events& events, const Machine& machine, int nodes, Threads& threads);

  // Adds a thread and returns its number. The first demands are requested at time 0, in the order
  // of these calls. asleep: whether the thread must first be woken.
  int add(int core, bool asleep);
  void begin();

  // Tells a polling thread that a poll from `at_us` on will find something.
  void notify(int thread, double at_us);
  // Wakes a sleeping thread; it is ready at `at_us`.
  void wake(int thread, double at_us);
  // Returns whether no other thread wants the core of this running thread.
  bool is_alone(int thread) const { return core_of(thread).waiting.empty(); }

  void happens(const Event& event);
  std::uint64_t switches() const { return switches_; }

 private:
  enum class State : std::uint8_t { ready, running, polling, spinning, napping, sleeping, over };
  struct Thread {
    int core = 0;
    State state = State::ready;
    bool copies = false;
    double left = 0;  // rest of its demand, in microseconds or bytes
    double look_at_us = kNever;
    double not_before_us = 0;
    double nap_from_us = 0, nap_us = 0;
    // Version of its planned wake-up; events of older versions are ignored.
    std::uint32_t version = 0;
  };
  struct Core {
    std::vector<int> waiting;  // threads that want the core, in order, including polling ones
    int running = -1;
    int last = -1;
    // If no thread runs: the time from which the first of `waiting` has the core.
    double since_us = 0;
    std::uint64_t turns = 0;  // number of further polls until the planned one
    double run_from_us = 0;
    double slice_end_us = 0;
    std::uint32_t version = 0;
  };

  Core& core_of(int thread) {
    return cores_[static_cast<std::size_t>(threads_[static_cast<std::size_t>(thread)].core)];
  }
  const Core& core_of(int thread) const {
    return cores_[static_cast<std::size_t>(threads_[static_cast<std::size_t>(thread)].core)];
  }
  int domain_of(int core) const;
  double turn_us(const Core& core) const;
  void plan(int core, double at_us);
  void plan_turn(int core, double now_us);
  void settle(Core& core, double now_us);
  void join(int thread, double now_us);
  void take_turn(int core, double now_us);
  void resume(int core, double now_us);
  bool give_up(int core, const Demand& demand, double now_us);
  void leave(int core, State state, double now_us);
  void run(int core, double now_us);
  void core_event(int core, double now_us);
  void plan_nap(int thread, double now_us);

  Events& events_;
  const Machine& machine_;
  Threads& host_;
  Memory memory_;
  std::vector<Thread> threads_;
  std::vector<Core> cores_;
  double now_us_ = 0;
  std::uint64_t switches_ = 0;
};

}  // namespace weft::sim
