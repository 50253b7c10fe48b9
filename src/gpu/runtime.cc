#include "gpu/runtime.h"

#include <utility>

namespace weft::gpu {

Runtime::~Runtime() {
  agent_.stop();
  for (Operation* one : released_) delete one;
}

Result<Context*> Runtime::context() {
  void* current = nullptr;
  if (const int code = driver_.current_context(&current); code != kSuccess) {
    return driver_.error("cuCtxGetCurrent", code);
  }
  if (!current) {
    return Error{"no device is current on this thread: call cudaSetDevice and cudaFree(0) before"};
  }
  const std::lock_guard lock(mutex_);
  auto& mine = contexts_[current];
  if (!mine) {
    auto made = Context::create(driver_);
    if (!made) return made.error();
    mine = std::move(*made);
  }
  return mine.get();
}

Result<Operation*> Runtime::add(Context* context, std::vector<Part> parts,
                                std::unique_ptr<Collective> collective, Pinned pinned,
                                std::shared_ptr<Order> order) {
  collect();
  Holdings holdings{{}, pinned, nullptr};
  auto channels = context->channels(parts.size());
  if (channels) holdings.channels = std::move(*channels);
  auto event = channels ? context->event() : Result<Event>(channels.error());
  if (!event) {
    context->give_back(holdings.channels, holdings.pinned, nullptr);
    return event.error();
  }
  holdings.event = *event;
  auto* const made = new Operation(this, context, std::move(parts), std::move(collective),
                                   std::move(holdings), std::move(order));
  agent_.add(made);
  return made;
}

void Runtime::release(Operation* operation) {
  if (!operation->release()) return;
  const std::lock_guard lock(released_mutex_);
  released_.push_back(operation);
}

// What no stream, graph or agent uses any more is used again.
void Runtime::collect() {
  std::vector<Operation*> all, kept;
  {
    const std::lock_guard lock(released_mutex_);
    all.swap(released_);
  }
  const OutsideCapture while_asking(driver_);
  for (Operation* one : all) {
    if (!one->leaving_.load(std::memory_order_relaxed) && one->streams_have_passed()) {
      one->leaving_.store(true, std::memory_order_release);
    }
    if (!one->left_.load(std::memory_order_acquire)) {
      kept.push_back(one);
      continue;
    }
    one->context_->give_back(one->holdings_.channels, one->holdings_.pinned, one->holdings_.event);
    delete one;
  }
  const std::lock_guard lock(released_mutex_);
  released_.insert(released_.end(), kept.begin(), kept.end());
}

}  // namespace weft::gpu
