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

// Demand: what a thread does next with its core.
struct Demand {
  enum class Kind : std::uint8_t {
    work,  // computes for `amount` microseconds
    copy,  // copies `amount` bytes
    poll,  // waits until notify() is called for it, and yields the core after each poll
    spin,  // waits until notify() is called for it, and keeps its core
    // Waits until notify() is called for it, and sleeps `amount` microseconds after each poll.
    nap,
    sleep,  // sleeps until wake() is called for it
    over,
  };
  Kind kind = Kind::over;
  double amount = 0;
  double look_at_us = kNever;  // time from which on a poll finds something
  // Time until which the thread is busy before its first poll (with poll).
  double not_before_us = 0;
};

// A thread's activity, as a trace shows it.
enum class Doing : std::uint8_t { working, polling, asleep, ready };

class Threads {
 public:
  virtual ~Threads() = default;
  // Returns what the thread does next. It is called when the thread has its core and has done what
  // it demanded last.
  virtual Demand next(int thread, double now_us) = 0;
  virtual void seen(int, Doing, double) {}
};

class Scheduler {
 public:
  // nodes: number of nodes, over all of which cores are numbered. threads: is asked what each
  // thread does next.
  Scheduler(Events& events, const Machine& machine, int nodes, Threads& threads);

  // Adds a thread on this core, and returns its number. At time 0 the threads are asked for their
  // first demands in the order of these calls. asleep: whether the thread sleeps until wake() is
  // called for it.
  int add(int core, bool asleep);
  void begin();

  // Tells a waiting thread that a poll from `at_us` on will find something.
  void notify(int thread, double at_us);
  // Wakes a sleeping thread, which is ready to run at `at_us`.
  void wake(int thread, double at_us);
  // Returns whether no other thread wants the core of this thread, which must be running.
  bool is_alone(int thread) const { return core_of(thread).waiting.empty(); }

  void happens(const Event& event);
  std::uint64_t switches() const { return switches_; }

 private:
  enum class State : std::uint8_t { ready, running, polling, spinning, napping, sleeping, over };
  struct Thread {
    int core = 0;
    State state = State::ready;
    bool copies = false;
    double left = 0;  // what is left of its demand, in microseconds or bytes
    double look_at_us = kNever;
    double not_before_us = 0;
    double nap_from_us = 0, nap_us = 0;
    // Version of the event that wakes the thread; events of older versions are ignored.
    std::uint32_t version = 0;
  };
  struct Core {
    // Threads that want the core, including those that poll, in the order in which they will get
    // it.
    std::vector<int> waiting;
    int running = -1;
    int last = -1;
    // If no thread runs: the time from which the first thread in `waiting` has the core.
    double since_us = 0;
    std::uint64_t turns = 0;  // number of polls by waiting threads until the planned event
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
