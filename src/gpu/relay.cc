#include "gpu/relay.h"

#include <algorithm>
#include <utility>

namespace weft::gpu {

Result<std::unique_ptr<Relay>> Relay::create(Context* context, Agent* agent,
                                             std::vector<Part> parts,
                                             std::unique_ptr<Collective> collective,
                                             std::size_t places) {
  const auto streams = context->copy_streams();
  if (!streams) return streams.error();
  std::unique_ptr<Relay> made(
      new Relay(context, agent, std::move(parts), std::move(collective), *streams));
  for (std::size_t i = 0; i < places; ++i) {
    const auto event = context->event();
    if (!event) return event.error();
    made->places_.push_back({*event});
  }
  return made;
}

Relay::~Relay() {
  for (const Place& one : places_) context_->give_back({}, {}, one.event);
}

Result<bool> Relay::start(std::size_t) {
  next_ = begun_ = ended_ = 0;
  if (const auto good = progress(); !good) return good;
  return true;
}

Result<bool> Relay::test(std::size_t) {
  if (const auto good = progress(); !good) return good;
  return has_failed_ ? is_quiet() : ended_ == parts_.size();
}

Result<bool> Relay::progress() {
  context_->make_current();
  for (Place& one : places_) {
    const auto changed = advance(&one);
    if (!changed) return changed;
    if (*changed) agent_->expect();
  }
  while (!has_failed_ && next_ < parts_.size()) {
    Place& place = places_[next_ % places_.size()];
    if (place.stage != Stage::free) break;
    place.part = next_++;
    if (const auto good = come(&place); !good) return good;
  }
  return true;
}

// Moves the place to its next stage. Returns whether the stage has changed.
Result<bool> Relay::advance(Place* place) {
  switch (place->stage) {
    case Stage::free:
      return false;
    case Stage::coming: {
      const auto passed = have_passed(*place);
      if (passed && *passed) place->stage = has_failed_ ? Stage::free : Stage::here;
      return passed;
    }
    case Stage::here: {
      if (has_failed_) {
        place->stage = Stage::free;
        return true;
      }
      if (place->part != begun_) return false;  // all ranks start them in one order
      const auto started = collective_->start(place->part);
      if (!started || !*started) return started;
      ++begun_;
      place->stage = Stage::travelling;
      return true;
    }
    case Stage::travelling: {
      const auto ended = collective_->test(place->part);
      if (ended && !*ended) return false;
      place->stage = Stage::free;
      return ended && !has_failed_ ? leave(place) : ended;
    }
    case Stage::leaving: {
      const auto passed = have_passed(*place);
      if (!passed || !*passed) return passed;
      place->stage = Stage::free;
      ++ended_;
      return true;
    }
  }
  return false;
}

Result<bool> Relay::come(Place* place) {
  place->stage = Stage::coming;
  return copy(*place, parts_[place->part].in, &Context::copy_in, streams_.in);
}

Result<bool> Relay::leave(Place* place) {
  place->stage = Stage::leaving;
  return copy(*place, parts_[place->part].out, &Context::copy_out, streams_.out);
}

// It waits, even after a failure, for the copies that were enqueued before.
Result<bool> Relay::copy(const Place& place, const std::vector<Copy>& copies, CopyOne one,
                         Stream stream) const {
  context_->make_current();  // the collective may have made calls to CUDA
  Result<bool> good = true;
  for (const Copy& next : copies) {
    if (good) good = (context_->*one)(next, stream);
  }
  const auto recorded = record(place, stream);
  if (!recorded) context_->driver().synchronise(stream);  // no event tells when they have ended
  return good ? recorded : good;
}

bool Relay::has_released_buffers() {
  context_->make_current();
  has_failed_ = true;
  return std::none_of(places_.begin(), places_.end(), [this](const Place& one) {
    const bool copies = one.stage == Stage::coming || one.stage == Stage::leaving;
    return copies && context_->driver().query(one.event) == kNotReady;
  });
}

Result<bool> Relay::record(const Place& place, Stream stream) const {
  const Driver& driver = context_->driver();
  if (const int code = driver.record(place.event, stream); code != kSuccess) {
    return driver.error("cuEventRecord", code);
  }
  return true;
}

Result<bool> Relay::have_passed(const Place& place) const {
  const Driver& driver = context_->driver();
  const int code = driver.query(place.event);
  if (code == kSuccess || code == kNotReady) return code == kSuccess;
  return driver.error("cuEventQuery", code);
}

// After a failure, copies under way still use the memory.
bool Relay::is_quiet() {
  context_->make_current();
  bool quiet = true;
  for (Place& one : places_) {
    if (one.stage == Stage::travelling) {
      const auto ended = collective_->test(one.part);
      if (!ended || *ended) one.stage = Stage::free;
    } else if (one.stage != Stage::free && context_->driver().query(one.event) != kNotReady) {
      one.stage = Stage::free;
    }
    quiet = quiet && one.stage == Stage::free;
  }
  return quiet;
}

}  // namespace weft::gpu
