#include "gpu/runtime.h"

#include <utility>

#include "gpu/relay.h"

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
  unsigned long long id = 0;
  if (driver_.context_id) {
    const int code = driver_.context_id(current, &id);
    if (code != kSuccess) return driver_.error("cuCtxGetId", code);
  }
  const std::lock_guard lock(mutex_);
  auto& mine = contexts_[{current, id}];
  if (mine && mine->is_gone()) gone_.push_back(std::move(mine));
  if (!mine) {
    auto made = Context::create(driver_);
    if (!made) return made.error();
    mine = std::move(*made);
  }
  return mine.get();
}

Result<Holdings> Runtime::holdings(Context* context, std::size_t channels, Pinned pinned) {
  Holdings made{{}, pinned, nullptr};
  auto taken = context->channels(channels);
  if (taken) made.channels = std::move(*taken);
  auto event = taken ? context->event() : Result<Event>(taken.error());
  if (!event) {
    context->give_back(made.channels, made.pinned, nullptr);
    return event.error();
  }
  made.event = *event;
  return made;
}

Result<Operation*> Runtime::add(Context* context, std::vector<Chunk> chunks,
                                std::unique_ptr<Collective> collective, Pinned pinned,
                                std::shared_ptr<Order> order, std::size_t buffers) {
  auto made =
      make(context, std::move(chunks), std::move(collective), pinned, std::move(order), buffers);
  if (!made) return made.error();
  return watch(std::move(*made));
}

Result<std::unique_ptr<Operation>> Runtime::make(Context* context, std::vector<Chunk> chunks,
                                                 std::unique_ptr<Collective> collective,
                                                 Pinned pinned, std::shared_ptr<Order> order,
                                                 std::size_t buffers) {
  collect();
  if (buffers > 0) {
    auto relay = Relay::create(context, &agent_, std::move(chunks), std::move(collective), buffers);
    if (!relay) {
      context->give_back({}, pinned, nullptr);
      return relay.error();
    }
    chunks = std::vector<Chunk>(1);
    collective = std::move(*relay);
  }
  auto held = holdings(context, chunks.size(), pinned);
  if (!held) return held.error();
  return std::make_unique<Operation>(this, context, std::move(chunks), std::move(collective),
                                     std::move(*held), std::move(order));
}

Operation* Runtime::watch(std::unique_ptr<Operation> made) {
  agent_.add(made.get());
  return made.release();
}

Result<Holdings> Runtime::hold(Context* context) {
  collect();
  return holdings(context, 1, {});
}

Operation* Runtime::add(Context* context, ByKernel by_kernel, Holdings held) {
  context->let_wait(by_kernel.form.waiting());
  auto* const made = new Operation(this, context, std::move(by_kernel), std::move(held));
  agent_.keep(made);
  return made;
}

Operation* Runtime::add(Context* context, ByNccl by_nccl, Holdings held) {
  auto* const made = new Operation(this, context, std::move(by_nccl), std::move(held));
  agent_.keep(made);
  return made;
}

void Runtime::release(Operation* operation) {
  if (!operation->release()) return;
  const std::lock_guard lock(released_mutex_);
  released_.push_back(operation);
}

// Frees operations that no stream, graph or agent uses any more, for reuse of their resources.
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
      if (one->is_by_kernel() || one->is_by_nccl()) agent_.forget(one);
    }
    if (!one->left_.load(std::memory_order_acquire)) {
      kept.push_back(one);
      continue;
    }
    give_back(one);
  }
  const std::lock_guard lock(released_mutex_);
  released_.insert(released_.end(), kept.begin(), kept.end());
}

void Runtime::give_back(Operation* operation) {
  const Holdings& held = operation->holdings_;
  const ByKernel& by_kernel = operation->by_kernel_;
  if (operation->is_by_kernel()) {
    operation->context_->let_wait(-by_kernel.form.waiting());
    if (operation->leaves_its_spot_in_order()) by_kernel.peers->give_back(by_kernel.spot);
  }
  if (operation->is_by_nccl()) {
    NcclComm& comm = *operation->by_nccl_.comm;
    // After a failure the ranks may have used the communicator differently.
    if (operation->failed_.load(std::memory_order_acquire)) comm.abort();
    comm.give_back();
  }
  operation->give_back_events();
  operation->context_->give_back(held.channels, held.pinned, held.event);
  delete operation;
}

}  // namespace weft::gpu
