// Worker: one thread that carries out whole blocking collectives of one communicator, in the
// order in which they were issued (Okuma & Nanri, threaded collective communication, TCC).
// Why one per communicator: collectives on different communicators may be started in different
// orders on different ranks; a common queue could deadlock a legal program.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/observer.h"
#include "engine/operation.h"

namespace weft {

class Worker {
 public:
  Worker(Observer& observer, int index);  // the thread starts with the first operation
  ~Worker();                              // after the queue has been emptied

  // Without a thread to be had, the operation is carried out by the caller.
  void submit(std::shared_ptr<Operation> operation);

 private:
  void thread_main();

  Observer& observer_;
  const int index_;
  std::mutex mutex_;  // guards queue_, stopping_ and the start of thread_
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Operation>> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace weft
