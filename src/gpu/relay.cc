#include "gpu/relay.h"

#include <algorithm>
#include <utility>

namespace weft::gpu {

Result<std::unique_ptr<Relay>> Relay::create(Context* context, Agent* agent,
                                             std::vector<Chunk> chunks,
                                             std::unique_ptr<Collective> collective,
                                             std::size_t buffers) {
  const auto streams = context->copy_streams();
  if (!streams) return streams.error();
  std::unique_ptr<Relay> made(
      new Relay(context, agent, std::move(chunks), std::move(collective), *streams));
  for (std::size_t i = 0; i < buffers; ++i) {
    const auto event = context->event();
    if (!event) return event.error();
    made->buffers_.push_back({*event});
  }
  return made;
}

Relay::~Relay() {
  for (const StagingBuffer& one : buffers_) context_->give_back({}, {}, one.event);
}

Result<bool> Relay::start(std::size_t) {
  next_ = begun_ = ended_ = 0;
  if (const auto good = progress(); !good) return good;
  return true;
}

Result<bool> Relay::test(std::size_t) {
  if (const auto good = progress(); !good) return good;
  return has_failed_ ? is_quiet() : ended_ == chunks_.size();
}

Result<bool> Relay::progress() {
  context_->make_current();
  for (StagingBuffer& one : buffers_) {
    const auto changed = advance(&one);
    if (!changed) return changed;
    if (*changed) agent_->expect();
  }
  while (!has_failed_ && next_ < chunks_.size()) {
    StagingBuffer& buffer = buffers_[next_ % buffers_.size()];
    if (buffer.stage != Stage::free) break;
    buffer.chunk = next_++;
    if (const auto good = come(&buffer); !good) return good;
  }
  return true;
}

// Moves the pinned buffer to its next stage if it can. Returns whether the stage has changed.
Result<bool> Relay::advance(StagingBuffer* buffer) {
  switch (buffer->stage) {
    case Stage::free:
      return false;
    case Stage::coming: {
      const auto passed = have_passed(*buffer);
      if (passed && *passed) buffer->stage = has_failed_ ? Stage::free : Stage::here;
      return passed;
    }
    case Stage::here: {
      if (has_failed_) {
        buffer->stage = Stage::free;
        return true;
      }
      // Chunks start in the order of their numbers, since all ranks must start them alike.
      if (buffer->chunk != begun_) return false;
      const auto started = collective_->start(buffer->chunk);
      if (!started || !*started) return started;
      ++begun_;
      buffer->stage = Stage::travelling;
      return true;
    }
    case Stage::travelling: {
      const auto ended = collective_->test(buffer->chunk);
      if (ended && !*ended) return false;
      buffer->stage = Stage::free;
      return ended && !has_failed_ ? leave(buffer) : ended;
    }
    case Stage::leaving: {
      const auto passed = have_passed(*buffer);
      if (!passed || !*passed) return passed;
      buffer->stage = Stage::free;
      ++ended_;
      return true;
    }
  }
  return false;
}

Result<bool> Relay::come(StagingBuffer* buffer) {
  buffer->stage = Stage::coming;
  return copy(*buffer, chunks_[buffer->chunk].in, &Context::copy_in, streams_.in);
}

Result<bool> Relay::leave(StagingBuffer* buffer) {
  buffer->stage = Stage::leaving;
  return copy(*buffer, chunks_[buffer->chunk].out, &Context::copy_out, streams_.out);
}

// Enqueues the copies of a chunk, and records an event behind them. If a copy fails, the event is
// still recorded, since earlier copies were enqueued.
Result<bool> Relay::copy(const StagingBuffer& buffer, const std::vector<Copy>& copies, CopyOne one,
                         Stream stream) const {
  context_->make_current();  // the collective may have made another context current
  Result<bool> good = true;
  for (const Copy& next : copies) {
    if (good) good = (context_->*one)(next, stream);
  }
  const auto recorded = record(buffer, stream);
  // Without an event nothing tells when the copies have ended, so they are waited for here.
  if (!recorded) context_->driver().synchronise(stream);
  return good ? recorded : good;
}

bool Relay::has_released_buffers() {
  context_->make_current();
  has_failed_ = true;
  return std::none_of(buffers_.begin(), buffers_.end(), [this](const StagingBuffer& one) {
    const bool copies = one.stage == Stage::coming || one.stage == Stage::leaving;
    return copies && context_->driver().query(one.event) == kNotReady;
  });
}

Result<bool> Relay::record(const StagingBuffer& buffer, Stream stream) const {
  const Driver& driver = context_->driver();
  if (const int code = driver.record(buffer.event, stream); code != kSuccess) {
    return driver.error("cuEventRecord", code);
  }
  return true;
}

Result<bool> Relay::have_passed(const StagingBuffer& buffer) const {
  const Driver& driver = context_->driver();
  const int code = driver.query(buffer.event);
  if (code == kSuccess || code == kNotReady) return code == kSuccess;
  return driver.error("cuEventQuery", code);
}

// Returns whether nothing is in progress any more (operation.h). After a failure, copies in
// progress still use the memory, so they are waited for.
bool Relay::is_quiet() {
  context_->make_current();
  bool quiet = true;
  for (StagingBuffer& one : buffers_) {
    if (one.stage == Stage::travelling) {
      const auto ended = collective_->test(one.chunk);
      if (!ended || *ended) one.stage = Stage::free;
    } else if (one.stage != Stage::free && context_->driver().query(one.event) != kNotReady) {
      one.stage = Stage::free;
    }
    quiet = quiet && one.stage == Stage::free;
  }
  return quiet;
}

}  // namespace weft::gpu
