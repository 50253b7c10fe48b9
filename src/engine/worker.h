// Worker: one thread that carries out whole blocking collectives of one communicator, in the
// order in which they were issued (Okuma & Nanri, threaded collective communication, TCC). A
// collective whose algorithm is named it carries out in Weft's rounds.
// Why one per communicator: collectives on different communicators may be started in different
// orders on different ranks; a common queue could deadlock a legal program.
#pragma once

#include <functional>
#include <memory>

#include "engine/observer.h"
#include "engine/operation.h"
#include "engine/thread.h"

namespace weft {

class Worker {
 public:
  // core: the core of its thread; -1 lets the observer place it.
  Worker(Observer& observer, int index, int core = -1);
  // Completes the queue first. May be called from inside the thread, by the operation that holds
  // the last reference to the worker's owner; the thread then ends by itself.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Starts the thread. Returns an error if the system refuses. Must precede the first submit().
  Result<bool> start();
  void submit(std::shared_ptr<Operation> operation);
  // A function that takes over an operation which the worker has only begun.
  using Then = std::function<void(std::shared_ptr<Operation>)>;
  // Queues an operation that the worker's thread advances only once. If the operation is not
  // complete then, it is passed to `then`.
  void begin(std::shared_ptr<Operation> operation, Then then);
  // Returns whether all submitted operations have completed.
  bool is_idle() const;

 private:
  struct Entry {
    std::shared_ptr<Operation> operation;
    Then then;  // if empty, the thread completes the operation
  };
  static void carry_out(Entry entry);
  void add(Entry entry);
  struct Queue;
  static void thread_main(const std::shared_ptr<Queue>& queue, Observer& observer, int index,
                          int core);

  Observer& observer_;
  const int index_;
  const int core_;
  const std::shared_ptr<Queue> queue_;  // shared with the thread, which may outlive the worker
  Thread thread_;
};

}  // namespace weft
