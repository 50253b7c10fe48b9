// Worker: one thread that carries out whole blocking collectives of one communicator, in the
// order in which they were issued (Okuma & Nanri, threaded collective communication, TCC).
// Why one per communicator: collectives on different communicators may be started in different
// orders on different ranks; a common queue could deadlock a legal program.
#pragma once

#include <memory>
#include <thread>

#include "engine/observer.h"
#include "engine/operation.h"

namespace weft {

class Worker {
 public:
  // The thread starts with the first operation. core: -1 where the observer places it.
  Worker(Observer& observer, int index, int core = -1);
  // The queue is emptied first. May be called from inside the thread, by the operation that holds
  // the last reference to the worker's owner; the thread then ends by itself.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Without a thread to be had, the operation is carried out by the caller.
  void submit(std::shared_ptr<Operation> operation);

 private:
  struct Queue;
  static void thread_main(const std::shared_ptr<Queue>& queue, Observer& observer, int index,
                          int core);

  Observer& observer_;
  const int index_;
  const int core_;
  const std::shared_ptr<Queue> queue_;  // shared with the thread, which may outlive the worker
  std::thread thread_;                  // guarded by the queue's mutex
};

}  // namespace weft
