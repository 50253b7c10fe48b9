// The thread that carries collectives out for the streams: it sees that data are ready, starts the
// collective, lets it progress, and tells the device of its end. It calls the driver in three cases
// alone: where the MPI library takes memory of the device, it makes that one current; it copies
// what is too long for pinned memory of its own (relay.h); and at the end it asks whether streams
// have passed.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu/operation.h"

namespace weft::gpu {

class Agent {
 public:
  using Clock = std::chrono::steady_clock;

  Agent() = default;
  ~Agent() { stop(); }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // From now on it is watched, until it is leaving and idle. The thread begins with the first one.
  void add(Operation* operation);
  // One that kernels alone carry out: it is given up when a rank has given it up, and when all are,
  // unless it is forgotten before.
  void keep(Operation* operation);
  void forget(Operation* operation);
  // Something will become ready soon.
  void expect() { expected_.store(true, std::memory_order_relaxed); }
  // A graph holds a collective, which a launch starts without a word to this process; +1 or -1.
  void count_graphs(int more) { graphs_.fetch_add(more, std::memory_order_relaxed); }
  bool has_graphs() const { return graphs_.load(std::memory_order_relaxed) > 0; }
  // How long it sleeps between two looks, when nothing has happened for this time; 0: not at all.
  // attentive: something may begin without a word to this process, or is under way.
  static std::chrono::microseconds nap(std::chrono::microseconds idle, bool attentive);
  // Ends the thread, and gives up what has not ended within this time, so that no stream waits for
  // ever. Returns how many those were.
  int stop(std::chrono::milliseconds patience = {});

 private:
  void begin();
  void run();
  void end();
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  void look_at_kept(Clock::time_point now);
  bool scan();
  bool advance(Operation& operation, bool* ahead_of_others);
  bool advance_part(Operation& operation, std::size_t part, bool may_start);
  void end_what_was_enqueued();
  static bool has_passed(const Operation& operation);
  static void give_up(Operation& operation);
  static bool idle(Operation& operation);

  std::mutex mutex_;  // guards the next five
  std::condition_variable called_;
  std::vector<Operation*> arrived_;
  std::vector<Operation*> kept_;
  bool stopping_ = false;
  Clock::time_point latest_{};  // when it is stopping: for what has not ended
  int not_ended_ = 0;           // the thread's, until it has ended
  std::atomic<bool> expected_{false};
  std::atomic<int> graphs_{0};
  Clock::time_point next_look_{};    // the thread's: at the kept ones
  std::vector<Operation*> watched_;  // the thread's
  bool under_way_ = false;           // the thread's: MPI carries something out
  std::vector<const Order*> held_;   // the thread's, for one scan: orders in which one is not ready
  std::thread thread_;
};

}  // namespace weft::gpu
