// Worker: a thread that carries out the blocking collectives of one communicator, in the order in
// which they were issued (Okuma & Nanri, threaded collective communication, TCC). It calls the MPI
// library's blocking collective or, if the user has named an algorithm, runs Weft's schedule. Each
// communicator has its own worker: collectives on different communicators may be started in
// different orders on different ranks, so a common queue could deadlock a legal program.
#pragma once

#include <functional>
#include <memory>

#include "engine/observer.h"
#include "engine/operation.h"
#include "engine/thread.h"

namespace weft {

class Worker {
 public:
  // observer: is told what the worker's thread does. index: number of the thread among the workers.
  // core: the core of the thread; -1 lets the observer choose it.
  Worker(Observer& observer, int index, int core = -1);
  // Waits until the queue is empty. The worker's own thread may call it, if an operation in the
  // queue holds the last reference to the worker's owner; the thread then ends by itself.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Starts the thread. Returns an error if the system refuses. Must precede the first submit().
  Result<bool> start();
  void submit(std::shared_ptr<Operation> operation);
  // A function that continues an operation which the worker has only begun.
  using Then = std::function<void(std::shared_ptr<Operation>)>;
  // Queues an operation that the worker's thread advances only once. If it is not complete then,
  // the thread passes it to `then`.
  void begin(std::shared_ptr<Operation> operation, Then then);
  // Returns whether all submitted operations have completed.
  bool is_idle() const;

 private:
  struct Entry {
    std::shared_ptr<Operation> operation;
    // Continues the operation after one advance; if empty, the worker's thread completes it.
    Then then;
  };
  static void carry_out(Entry entry);
  void add(Entry entry);
  struct Queue;
  static void thread_main(const std::shared_ptr<Queue>& queue, Observer& observer, int index,
                          int core);

  Observer& observer_;
  const int index_;
  const int core_;
  // Shared with the worker's thread, which may outlive this object.
  const std::shared_ptr<Queue> queue_;
  Thread thread_;
};

}  // namespace weft
