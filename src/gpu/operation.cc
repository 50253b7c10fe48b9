#include "gpu/operation.h"

#include <algorithm>
#include <utility>

namespace weft::gpu {
namespace {

// Returns a number by which uses of the stream are told apart. cudaStreamPerThread is a different
// stream in each thread, so its number is that of the calling thread, which is never reused. For
// other streams it is 0.
std::uint64_t owner_of(Stream stream) {
  static std::atomic<std::uint64_t> threads{0};
  thread_local const std::uint64_t mine = ++threads;
  return stream == kStreamPerThread ? mine : 0;
}

bool reaches_all(const Context& context, const std::vector<Chunk>& chunks) {
  return std::all_of(chunks.begin(), chunks.end(), [&](const Chunk& chunk) {
    const auto reaches = [&](const Copy& one) { return context.reaches(one.device); };
    return std::all_of(chunk.in.begin(), chunk.in.end(), reaches) &&
           std::all_of(chunk.out.begin(), chunk.out.end(), reaches);
  });
}

}  // namespace

Operation::Operation(OperationOwner* owner, Context* context, std::vector<Chunk> chunks,
                     std::unique_ptr<Collective> collective, Holdings holdings,
                     std::shared_ptr<Order> order)
    : owner_(owner),
      context_(context),
      chunks_(std::move(chunks)),
      collective_(std::move(collective)),
      holdings_(std::move(holdings)),
      order_(std::move(order)),
      number_(order_ ? order_->next_number() : 0),
      kernels_reach_all_(reaches_all(*context_, chunks_)),
      progress_(chunks_.size()) {
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    progress_[chunk].seen = weft_device_load(&holdings_.channels[chunk].host->ready);
    starts_.push_back(progress_[chunk].seen);
  }
}

Operation::Operation(OperationOwner* owner, Context* context, ByKernel by_kernel, Holdings holdings)
    : owner_(owner),
      context_(context),
      holdings_(std::move(holdings)),
      by_kernel_(std::move(by_kernel)),
      path_(by_kernel_.form.apart ? "in three kernels" : "in one kernel") {}

Operation::Operation(OperationOwner* owner, Context* context, ByNccl by_nccl, Holdings holdings)
    : owner_(owner),
      context_(context),
      holdings_(std::move(holdings)),
      by_nccl_(std::move(by_nccl)) {}

Result<bool> Operation::start(Stream stream) {
  if (const auto good = not_failed(); !good) return good;
  started_.store(true, std::memory_order_relaxed);
  const auto enqueued = enqueue_start(stream);
  owner_->expect();
  return enqueued ? enqueued : failed_with(enqueued.error());
}

// Marks the operation as failed, since work that other ranks rely on may be incomplete here.
// Returns the error.
Result<bool> Operation::failed_with(const Error& error) {
  fail(error);
  return not_failed();
}

Result<bool> Operation::run(Stream stream) {
  if (!is_by_kernel() && !is_by_nccl()) {
    const auto started = start(stream);
    return started ? wait(stream) : started;
  }
  if (const auto good = not_failed(); !good) return good;
  started_.store(true, std::memory_order_relaxed);
  const auto enqueued = is_by_nccl() ? run_by_nccl(stream) : enqueue_phases(kAll, stream);
  return enqueued ? enqueued : failed_with(enqueued.error());
}

Result<bool> Operation::enqueue_phases(int phases, Stream stream) {
  bool captured = false;
  if (const auto held = held_by_graph(stream, &captured); !held) return held;
  if (phases != kAll) in_halves_.store(true, std::memory_order_relaxed);
  const auto launched = launch_phases(phases, stream);
  if (!launched) return record_and(launched, captured, stream);
  return captured ? true : record(stream);
}

Result<bool> Operation::launch_phases(int phases, Stream stream) {
  const auto& [peers, spot, call, form, slots, slot_bytes] = by_kernel_;
  const Sharing sharing =
      peers->sharing(spot, holdings_.channels[0], form.slices, slots.get(), slot_bytes);
  if (!form.apart) return context_->launch(call, sharing, phases, stream);
  for (const int one : {kPublish, kAwait, kTake}) {
    if (!(phases & one)) continue;
    if (const auto launched = context_->launch(call, sharing, one, stream); !launched)
      return launched;
  }
  return true;
}

bool Operation::notices_by_stream() const {
  return !kernels_count_ && owner_->options().notify != Notify::kernel &&
         context_->has_stream_values();
}

std::optional<ShortCopies> Operation::by_kernel(const std::vector<Copy>& copies, Way way) const {
  if (notices_by_stream() || copies.size() > kMostShortCopies) return std::nullopt;
  // If kernels cannot access the memory, the driver copies, since it can copy from any device.
  if (!kernels_reach_all_) return std::nullopt;
  ShortCopies made{};
  std::size_t bytes = 0;
  for (const Copy& one : copies) {
    if (one.rows > 1) return std::nullopt;
    bytes += one.bytes;
    auto* const device = reinterpret_cast<std::uint8_t*>(one.device);
    auto* const host = reinterpret_cast<std::uint8_t*>(one.host);
    ShortCopy& next = made.all[made.count++];
    next = way == Way::in ? ShortCopy{device, host, one.bytes} : ShortCopy{host, device, one.bytes};
  }
  if (bytes > owner_->options().copied_by_kernels) return std::nullopt;
  return made;
}

// Enqueues the copies of a chunk into pinned memory, and then the announcement to the agent that
// the chunk can start.
Result<bool> Operation::tell_start(std::size_t chunk, Stream stream) {
  const Channel& channel = holdings_.channels[chunk];
  const std::vector<Copy>& in = chunks_[chunk].in;
  if (const auto copies = by_kernel(in, Way::in)) {
    return context_->launch_start(channel, *copies, stream);
  }
  for (const Copy& one : in) {
    if (const auto copied = context_->copy_in(one, stream); !copied) return copied;
  }
  if (!notices_by_stream()) return context_->launch_start(channel, {}, stream);
  return context_->write_start(channel, ++starts_[chunk], stream);
}

// Enqueues the wait for the end of a chunk, and then the copies out of pinned memory.
Result<bool> Operation::wait_for_end(std::size_t chunk, Stream stream) {
  const Channel& channel = holdings_.channels[chunk];
  const std::vector<Copy>& out = chunks_[chunk].out;
  if (const auto copies = by_kernel(out, Way::out)) {
    return context_->launch_wait(channel, *copies, stream);
  }
  const auto ended = notices_by_stream() ? context_->wait_until(channel, starts_[chunk], stream)
                                         : context_->launch_wait(channel, {}, stream);
  if (!ended) return ended;
  for (const Copy& one : out) {
    if (const auto copied = context_->copy_out(one, stream); !copied) return copied;
  }
  return true;
}

Result<bool> Operation::enqueue_start(Stream stream) {
  if (is_by_kernel()) return enqueue_phases(kPublish, stream);
  if (is_by_nccl()) return start_by_nccl(stream);
  bool captured = false;
  if (const auto held = held_by_graph(stream, &captured); !held) return held;
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    if (const auto told = tell_start(chunk, stream); !told)
      return record_and(told, captured, stream);
  }
  return captured ? true : record(stream);
}

Result<bool> Operation::wait(Stream stream) {
  if (const auto good = not_failed(); !good) return good;
  if (!started_.load(std::memory_order_relaxed)) {
    // There is no result to wait for, so this is an error.
    return Error{"a collective is waited for that was not started before"};
  }
  return enqueue_wait(stream);
}

Result<bool> Operation::enqueue_wait(Stream stream) {
  if (is_by_kernel()) return enqueue_phases(kFinish, stream);
  if (is_by_nccl()) return wait_by_nccl(stream);
  bool captured = false;
  if (const auto held = held_by_graph(stream, &captured); !held) return held;
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    if (const auto ended = wait_for_end(chunk, stream); !ended)
      return record_and(ended, captured, stream);
  }
  return captured ? true : record(stream);
}

Result<weft_gpu_flags> Operation::flags() {
  if (const auto good = not_failed(); !good) return good.error();
  if (is_by_kernel()) {
    return Error{
        "a kernel of Weft's carries this collective out, and waits for it (WEFT_GPU_ONE_KERNEL)"};
  }
  if (is_by_nccl()) {
    return Error{"NCCL carries this collective out, which no kernel can start (WEFT_GPU_NCCL)"};
  }
  if (!is_persistent()) return Error{"a kernel can start only a persistent collective"};
  if (chunks_.size() != 1 || holdings_.pinned.memory) {
    return Error{
        "a kernel can start this collective not by itself: its buffers are copied, or travel"
        " in several parts"};
  }
  kernels_count_ = true;
  started_.store(true, std::memory_order_relaxed);
  return holdings_.channels[0].device;
}

// If the stream is being captured, keeps the operation alive until the graph and all graphs
// instantiated from it are destroyed. *captured: gets whether it is being captured.
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
  kernels_count_ = true;
  const auto gone = [](void* data) {
    auto* const self = static_cast<Operation*>(data);
    self->owner_->count_graphs(-1);
    self->owner_->release(self);
  };
  void* object = nullptr;
  code = driver.create_user_object(&object, this, gone, 1, kNoDestructorSync);
  if (code != kSuccess) return driver.error("cuUserObjectCreate", code);
  retain();
  owner_->count_graphs(1);
  code = driver.retain_user_object(graph, object, 1, kMoveReference);
  if (code == kSuccess) return true;
  // Releasing the object also drops its reference to this operation.
  driver.release_user_object(object, 1);
  return driver.error("cuGraphRetainUserObject", code);
}

Result<bool> Operation::record(Stream stream) {
  const Driver& driver = context_->driver();
  const std::lock_guard lock(mutex_);
  auto used =
      std::find_if(used_.begin(), used_.end(), [&, owner = owner_of(stream)](const Used& one) {
        return one.stream == stream && one.thread == owner;
      });
  if (used == used_.end()) {
    const Result<Event> event = used_.empty() ? holdings_.event : context_->event();
    if (!event) return event.error();
    used = used_.insert(used_.end(), {stream, owner_of(stream), *event});
  }
  const int code = driver.record(used->event, stream);
  return code == kSuccess ? Result<bool>(true) : driver.error("cuEventRecord", code);
}

Result<bool> Operation::record_and(const Result<bool>& error, bool captured, Stream stream) {
  if (!captured) (void)record(stream);
  return error;
}

// Returns whether all work of the operation in streams has completed. After a device error nothing
// runs any more, and after a reset the events are gone; both count as completed.
bool Operation::streams_have_passed() const {
  if (context_->is_gone()) return true;
  if (is_by_nccl() && !by_nccl_.comm->has_ended()) return false;
  const std::lock_guard lock(mutex_);
  return std::all_of(used_.begin(), used_.end(), [this](const auto& one) {
    return context_->driver().query(one.event) != kNotReady;
  });
}

void Operation::give_back_events() {
  for (std::size_t i = 1; i < used_.size(); ++i) context_->give_back({}, {}, used_[i].event);
}

void Operation::fail(const Error& error, bool is_news) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_.load(std::memory_order_relaxed)) return;
    why_failed_ = error;
    is_told_ = !is_news;
    // This store comes before the error is told to anyone, so that a thread that learns of the
    // error also finds it here.
    failed_.store(true, std::memory_order_release);
    if (is_news) owner_->untold().add(error.message);
  }
  if (order_) order_->break_from(number_ + 1);
  if (is_by_kernel()) by_kernel_.peers->give_up(by_kernel_.spot);
}

void Operation::fail_if_given_up() {
  if (!is_by_kernel() || !was_given_up()) return;
  fail(
      {"a collective in one kernel was given up: a rank has ended, or has started it again"
       " before it had waited for it"});
}

bool Operation::is_lost() {
  fail_if_given_up();
  if (is_by_kernel()) return by_kernel_.peers->is_given_up(by_kernel_.spot);
  if (const auto state = by_nccl_.comm->state(); !state) fail(state.error());
  return failed_.load(std::memory_order_acquire);
}

// Returns whether a kernel has given up the operation. No kernel waits for it then.
bool Operation::was_given_up() const {
  return weft_device_load(&holdings_.channels[0].host->ready) == WEFT_GPU_GIVEN_UP;
}

// Returns whether another operation may use this one's spot (its memory, see one_kernel.h). It may
// not after a failure, since the flags there do not hold rounds then, or while a round is published
// but not finished, since the next operation would look as if it had been started again too early.
bool Operation::leaves_its_spot_in_order() const {
  if (failed_.load(std::memory_order_acquire) || was_given_up()) return false;
  return !in_halves_.load(std::memory_order_relaxed) ||
         by_kernel_.peers->is_finished(by_kernel_.spot);
}

// Returns the operation's error if it has failed, otherwise true. An error that was returned here
// is not reported again when the process ends.
Result<bool> Operation::not_failed() {
  fail_if_given_up();
  if (!failed_.load(std::memory_order_acquire)) return true;
  const std::lock_guard lock(mutex_);
  if (!is_told_) owner_->untold().remove(why_failed_.message);
  is_told_ = true;
  return why_failed_;
}

}  // namespace weft::gpu
