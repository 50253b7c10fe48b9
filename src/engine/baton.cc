// Implements the sleep and the wake-up of threads on one core. A calling thread raises `calls`
// before it reads `sleeps`, so that no wake-up is lost.
#include "engine/baton.h"

#include <utility>

#include "engine/futex.h"

namespace weft {

Baton::Baton(std::shared_ptr<void> memory, Place* own, std::vector<Place*> others)
    : memory_(std::move(memory)), own_(own), others_(std::move(others)) {}

Baton::Baton() {
  const auto place = std::make_shared<Place>();
  own_ = place.get();
  memory_ = place;
}

void Baton::sleep(std::uint32_t calls_before, std::int64_t ns) {
  own_->sleeps.store(1);
  sleep_on(own_->calls, calls_before, FutexOf::processes, ns);
  own_->sleeps.store(0);
}

void Baton::call_others() {
  for (Place* other : others_) {
    other->calls.fetch_add(1);
    if (other->sleeps.load() != 0) wake_one(other->calls, FutexOf::processes);
  }
}

}  // namespace weft
