#include "gpu/operation.h"

#include <utility>

#include "gpu/runtime.h"

namespace weft::gpu {

Operation::Operation(Runtime* runtime, Context* context, std::vector<Part> parts,
                     std::unique_ptr<Collective> collective, Holdings holdings,
                     std::shared_ptr<Order> order)
    : runtime_(runtime),
      context_(context),
      parts_(std::move(parts)),
      collective_(std::move(collective)),
      holdings_(std::move(holdings)),
      order_(std::move(order)),
      progress_(parts_.size()) {
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    progress_[part].seen = weft_device_load(&holdings_.channels[part].host->ready);
  }
}

Result<bool> Operation::start(Stream stream) {
  if (const auto good = not_failed(); !good) return good;
  const auto enqueued = enqueue_start(stream);
  // Other ranks may count on what is not complete here.
  if (!enqueued) fail(enqueued.error());
  runtime_->agent().expect();
  return enqueued;
}

Result<bool> Operation::enqueue_start(Stream stream) {
  bool captured = false;
  if (const auto held = held_by_graph(stream, &captured); !held) return held;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    for (const Copy& one : parts_[part].in) {
      const auto host = reinterpret_cast<Address>(one.host);
      if (const auto done = context_->copy(host, one.device, one.bytes, stream); !done) return done;
    }
    const auto done = context_->launch_start(holdings_.channels[part], stream);
    if (!done) return done;
  }
  return captured ? true : record(stream);
}

Result<bool> Operation::wait(Stream stream) {
  if (const auto good = not_failed(); !good) return good;
  return enqueue_wait(stream);
}

Result<bool> Operation::enqueue_wait(Stream stream) {
  bool captured = false;
  if (const auto held = held_by_graph(stream, &captured); !held) return held;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const auto done = context_->launch_wait(holdings_.channels[part], stream);
    if (!done) return done;
    for (const Copy& one : parts_[part].out) {
      const auto host = reinterpret_cast<Address>(one.host);
      if (const auto copied = context_->copy(one.device, host, one.bytes, stream); !copied) {
        return copied;
      }
    }
  }
  return captured ? true : record(stream);
}

Result<weft_gpu_flags> Operation::flags() const {
  if (const auto good = not_failed(); !good) return good.error();
  if (parts_.size() != 1 || !parts_[0].in.empty() || !parts_[0].out.empty()) {
    return Error{
        "a kernel can start this collective not by itself: its buffers are copied, or travel"
        " in several parts"};
  }
  return holdings_.channels[0].device;
}

// The graph keeps the operation until it and all that was instantiated from it are gone.
Result<bool> Operation::held_by_graph(Stream stream, bool* captured) {
  const Driver& driver = context_->driver();
  int status = kNotCapturing;
  std::uint64_t id = 0;
  void* graph = nullptr;
  int code = driver.capture_info(stream, &status, &id, &graph, nullptr, nullptr);
  if (code != kSuccess) return driver.error("cuStreamGetCaptureInfo", code);
  if (status == kCaptureBroken) {
    return Error{"the stream's capture has been invalidated by an earlier call"};
  }
  *captured = status == kCapturing;
  if (!*captured) return true;
  if (order_) {
    return Error{
        "a collective that was enqueued outside of a capture can be waited for, or started,"
        " only outside of it"};
  }
  const auto gone = [](void* data) {
    auto* const self = static_cast<Operation*>(data);
    self->runtime_->release(self);
  };
  void* object = nullptr;
  code = driver.create_user_object(&object, this, gone, 1, kNoDestructorSync);
  if (code != kSuccess) return driver.error("cuUserObjectCreate", code);
  retain();
  code = driver.retain_user_object(graph, object, 1, kMoveReference);
  if (code != kSuccess) return driver.error("cuGraphRetainUserObject", code);
  return true;
}

Result<bool> Operation::record(Stream stream) {
  const Driver& driver = context_->driver();
  if (const int code = driver.record(holdings_.event, stream); code != kSuccess) {
    return driver.error("cuEventRecord", code);
  }
  recorded_.store(true, std::memory_order_release);
  return true;
}

// After an error of the device's nothing runs there any more.
bool Operation::streams_have_passed() const {
  if (!recorded_.load(std::memory_order_acquire)) return true;
  return context_->driver().query(holdings_.event) != kNotReady;
}

void Operation::fail(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_.load(std::memory_order_relaxed)) return;
    why_failed_ = error;
    failed_.store(true, std::memory_order_release);
  }
  if (order_) order_->broken.store(true, std::memory_order_release);
}

Result<bool> Operation::not_failed() const {
  if (!failed_.load(std::memory_order_acquire)) return true;
  const std::lock_guard lock(mutex_);
  return why_failed_;
}

}  // namespace weft::gpu
