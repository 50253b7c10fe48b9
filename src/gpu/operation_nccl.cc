// Collectives by NCCL in streams. Outside of captures NCCL runs in a stream of Weft's, so that work
// between start and wait runs beside it. In a capture it runs in a branch of the graph. Start and
// wait may be in different graphs, so that waiting kernels poll the number of ends, which a copy
// behind NCCL sets to the number of starts.
#include "gpu/operation.h"

namespace weft::gpu {

Result<bool> Operation::start_by_nccl(Stream stream) {
  bool captured = false;
  if (const auto held = held_by_graph(stream, &captured); !held) return held;
  if (captured) return branch_by_nccl(stream);
  if (in_flight_.exchange(true, std::memory_order_relaxed)) {
    return Error{"a collective was started again before it had been waited for"};
  }
  NcclComm& comm = *by_nccl_.comm;
  Result<bool> done = context_->launch_start(holdings_.channels[0], {}, stream);
  if (done) done = comm.follow(stream);
  if (done) done = comm.enqueue(by_nccl_.call, comm.stream());
  if (done) done = context_->copy_end(holdings_.channels[0], comm.stream());
  // The end is marked after an error, too, since earlier work uses the operation's resources.
  const auto marked = comm.mark_end();
  if (done) done = marked;
  return done ? record(stream) : record_and(done, captured, stream);
}

// Captures NCCL's work in the stream, and then lets the stream's later work depend only on what
// precedes it.
Result<bool> Operation::branch_by_nccl(Stream stream) {
  const auto told = context_->launch_start(holdings_.channels[0], {}, stream);
  if (!told) return told;
  const auto before = context_->capture_tips(stream);
  if (!before) return before.error();
  Result<bool> done = by_nccl_.comm->enqueue(by_nccl_.call, stream);
  if (done) done = context_->copy_end(holdings_.channels[0], stream);
  if (!done) return done;
  auto end = context_->capture_tips(stream);
  if (!end) return end.error();
  {
    const std::lock_guard lock(mutex_);
    branch_ = std::move(*end);
  }
  return context_->set_capture_tips(*before, stream);
}

Result<bool> Operation::wait_by_nccl(Stream stream) {
  bool captured = false;
  if (const auto held = held_by_graph(stream, &captured); !held) return held;
  in_flight_.store(false, std::memory_order_relaxed);
  if (!captured) {
    // The event keeps the kernel, which waits for starts in graphs, from running ahead of NCCL.
    Result<bool> done = by_nccl_.comm->await_end(stream);
    if (done) done = context_->launch_wait(holdings_.channels[0], {}, stream);
    return done ? record(stream) : record_and(done, captured, stream);
  }
  const auto tips = context_->capture_tips(stream);
  if (!tips) return tips.error();
  {
    const std::lock_guard lock(mutex_);
    const bool is_here = !branch_.nodes.empty() && tips->capture == branch_.capture;
    if (is_here) return context_->add_capture_tips(branch_, stream);
  }
  return context_->launch_wait(holdings_.channels[0], {}, stream);
}

Result<bool> Operation::run_by_nccl(Stream stream) {
  bool captured = false;
  if (const auto held = held_by_graph(stream, &captured); !held) return held;
  const auto done = by_nccl_.comm->enqueue(by_nccl_.call, stream);
  if (!done) return record_and(done, captured, stream);
  return captured ? done : record(stream);
}

}  // namespace weft::gpu
