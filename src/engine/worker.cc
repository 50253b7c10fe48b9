// Implements Worker: a queue of collectives, and the thread that carries them out one after the
// other.
#include "engine/worker.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace weft {

struct Worker::Queue {
  std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  std::deque<Entry> entries;
  bool is_busy = false;
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
  if (!thread_.is_started()) return;
  if (thread_.is_this_one())
    thread_.detach();
  else
    thread_.join();
}

Result<bool> Worker::start() {
  return thread_.start([queue = queue_, &observer = observer_, index = index_, core = core_] {
    thread_main(queue, observer, index, core);
  });
}

void Worker::submit(std::shared_ptr<Operation> operation) {
  add({std::move(operation), {}});
}

void Worker::begin(std::shared_ptr<Operation> operation, Then then) {
  add({std::move(operation), std::move(then)});
}

void Worker::add(Entry entry) {
  entry.operation->compute_as_here();
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->entries.push_back(std::move(entry));
  }
  queue_->changed.notify_one();
}

bool Worker::is_idle() const {
  const std::lock_guard lock(queue_->mutex);
  return queue_->entries.empty() && !queue_->is_busy;
}

// Carries out an operation of the queue. If the operation holds the last reference to the worker's
// owner, this may destroy the worker.
void Worker::carry_out(Entry entry) {
  const ComputesAs caller(entry.operation->computes_as());
  if (entry.operation->advance()) return;
  if (entry.then) return entry.then(std::move(entry.operation));
  while (!entry.operation->advance()) std::this_thread::yield();
}

void Worker::thread_main(const std::shared_ptr<Queue>& queue, Observer& observer, int index,
                         int core) {
  observer.thread_started("tcc", index);
  if (core >= 0) observer.moves_to(core);
  std::unique_lock lock(queue->mutex);
  while (true) {
    if (queue->entries.empty() && !queue->stopping) {
      observer.activity(Activity::asleep);
      queue->changed.wait(lock, [&] { return !queue->entries.empty() || queue->stopping; });
    }
    if (queue->entries.empty()) return;
    Entry entry = std::move(queue->entries.front());
    queue->entries.pop_front();
    queue->is_busy = true;
    lock.unlock();
    observer.activity(Activity::working);
    carry_out(std::move(entry));
    lock.lock();
    queue->is_busy = false;
  }
}

}  // namespace weft
