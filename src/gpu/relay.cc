#include "gpu/relay.h"

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
  if (const auto good = go_on(); !good) return good;
  return true;
}

Result<bool> Relay::test(std::size_t) {
  if (const auto good = go_on(); !good) return good;
  return ended_ == parts_.size();
}

Result<bool> Relay::go_on() {
  context_->make_current();
  for (Place& one : places_) {
    const auto changed = advance(&one);
    if (!changed) return changed;
    if (*changed) agent_->expect();
  }
  while (next_ < parts_.size()) {
    Place& place = places_[next_ % places_.size()];
    if (place.stage != Stage::free) break;
    place.part = next_++;
    if (const auto good = come(&place); !good) return good;
  }
  return true;
}

// True: it has come to another stage.
Result<bool> Relay::advance(Place* place) {
  switch (place->stage) {
    case Stage::free:
      return false;
    case Stage::coming: {
      const auto passed = have_passed(*place);
      if (passed && *passed) place->stage = Stage::here;
      return passed;
    }
    case Stage::here: {
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
      return ended ? leave(place) : ended;
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
  Result<bool> good = true;
  for (const Copy& one : parts_[place->part].in) {
    if (good) good = context_->copy_in(one, streams_.in);
  }
  const auto recorded = record(*place, streams_.in);
  return good ? recorded : good;
}

Result<bool> Relay::leave(Place* place) {
  place->stage = Stage::leaving;
  Result<bool> good = true;
  for (const Copy& one : parts_[place->part].out) {
    if (good) good = context_->copy_out(one, streams_.out);
  }
  const auto recorded = record(*place, streams_.out);
  return good ? recorded : good;
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

// Where it has failed, what is under way uses its memory still.
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
