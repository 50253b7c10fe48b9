// The queue of whole blocking collectives and the thread that empties it.
#include "engine/worker.h"

#include "engine/thread.h"

namespace weft {

Worker::Worker(Observer& observer, int index) : observer_(observer), index_(index) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Worker::submit(std::shared_ptr<Operation> operation) {
  {
    const std::lock_guard lock(mutex_);
    if (thread_.joinable() || start_thread(thread_, [this] { thread_main(); }))
      queue_.push_back(std::move(operation));
  }
  while (operation && !operation->advance()) {
  }
  changed_.notify_one();
}

void Worker::thread_main() {
  observer_.thread_started("tcc", index_);
  std::unique_lock lock(mutex_);
  while (true) {
    if (queue_.empty() && !stopping_) {
      observer_.activity(Activity::asleep);
      changed_.wait(lock, [this] { return !queue_.empty() || stopping_; });
    }
    if (queue_.empty()) return;
    auto operation = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    observer_.activity(Activity::working);
    while (!operation->advance()) {
    }
    operation.reset();
    lock.lock();
  }
}

}  // namespace weft
