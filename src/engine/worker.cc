// The queue of whole blocking collectives and the thread that empties it.
#include "engine/worker.h"

#include <condition_variable>
#include <deque>
#include <mutex>

#include "engine/thread.h"

namespace weft {

struct Worker::Queue {
  std::mutex mutex;  // guards the rest
  std::condition_variable changed;
  std::deque<std::shared_ptr<Operation>> operations;
  bool stopping = false;
};

Worker::Worker(Observer& observer, int index, int core)
    : observer_(observer), index_(index), core_(core), queue_(std::make_shared<Queue>()) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->stopping = true;
  }
  queue_->changed.notify_one();
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id())
    thread_.detach();
  else
    thread_.join();
}

Result<bool> Worker::start() {
  return start_thread(thread_, [queue = queue_, &observer = observer_, index = index_,
                                core = core_] { thread_main(queue, observer, index, core); });
}

void Worker::submit(std::shared_ptr<Operation> operation) {
  operation->compute_as_here();
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->operations.push_back(std::move(operation));
  }
  queue_->changed.notify_one();
}

void Worker::thread_main(const std::shared_ptr<Queue>& queue, Observer& observer, int index,
                         int core) {
  observer.thread_started("tcc", index);
  if (core >= 0) observer.moves_to(core);
  std::unique_lock lock(queue->mutex);
  while (true) {
    if (queue->operations.empty() && !queue->stopping) {
      observer.activity(Activity::asleep);
      queue->changed.wait(lock, [&] { return !queue->operations.empty() || queue->stopping; });
    }
    if (queue->operations.empty()) return;
    auto operation = std::move(queue->operations.front());
    queue->operations.pop_front();
    lock.unlock();
    observer.activity(Activity::working);
    {
      const ComputesAs caller(operation->computes_as());
      while (!operation->advance()) {
      }
    }
    operation.reset();  // may end the worker itself
    lock.lock();
  }
}

}  // namespace weft
