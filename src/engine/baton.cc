// The futex is one between processes: no private one.
#include "engine/baton.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <utility>

namespace weft {
namespace {

void futex(std::atomic<std::uint32_t>& word, int what, std::uint32_t value,
           const timespec* at_most) {
  syscall(SYS_futex, &word, what, value, at_most, nullptr, 0);
}

}  // namespace

Baton::Baton(std::shared_ptr<void> memory, Place* own, std::vector<Place*> others)
    : memory_(std::move(memory)), own_(own), others_(std::move(others)) {}

Baton::Baton() {
  const auto place = std::make_shared<Place>();
  own_ = place.get();
  memory_ = place;
}

void Baton::sleep(std::uint32_t calls_before, std::int64_t ns) {
  const timespec at_most{ns / 1'000'000'000, ns % 1'000'000'000};
  own_->sleeps.store(1);
  futex(own_->calls, FUTEX_WAIT, calls_before, &at_most);
  own_->sleeps.store(0);
}

void Baton::call_others() {
  for (Place* other : others_) {
    other->calls.fetch_add(1);
    if (other->sleeps.load() != 0) futex(other->calls, FUTEX_WAKE, 1, nullptr);
  }
}

}  // namespace weft
