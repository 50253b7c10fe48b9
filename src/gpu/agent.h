// The agent is the thread that carries collectives out on behalf of streams: it sees that data are
// ready, starts the collective, progresses it, and tells the device when it has ended. It calls the
// driver in three cases only: it makes a device current where the MPI library takes device memory;
// it copies what is too long for Weft's pinned memory (relay.h); and at the end it asks whether
// streams have passed.
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

  // Watches the operation until it is leaving and idle. The first call starts the thread.
  void add(Operation* operation);
  // Watches an operation that kernels alone carry out: it is given up when another rank gives it
  // up, and at the end with all others, unless forget() was called before.
  void keep(Operation* operation);
  void forget(Operation* operation);
  // Tells the agent that an operation will become ready soon, so that it does not sleep.
  void expect() { expected_.store(true, std::memory_order_relaxed); }
  // Counts graphs that contain a collective (+1 or -1): their launch is not announced to this
  // process.
  void count_graphs(int more) { graphs_.fetch_add(more, std::memory_order_relaxed); }
  bool has_graphs() const { return graphs_.load(std::memory_order_relaxed) > 0; }
  // Returns how long the agent sleeps between two looks after it has been idle for this time; 0
  // means that it does not sleep. attentive: an operation is under way, or may begin unannounced.
  static std::chrono::microseconds nap(std::chrono::microseconds idle, bool attentive);
  // Ends the thread. Gives up operations that have not ended within `patience`, so that no stream
  // waits for ever, and returns their number.
  int stop(std::chrono::milliseconds patience = {});

 private:
  void begin();
  void run();
  void end();
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  void look_at_kept(Clock::time_point now);
  bool scan();
  bool advance(Operation& operation, bool* ahead_of_others);
  bool advance_chunk(Operation& operation, std::size_t chunk, bool may_start);
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
  // The orders in which an operation is not ready; used by the thread, during one scan.
  std::vector<const Order*> not_ready_;
  std::thread thread_;
};

}  // namespace weft::gpu
