#include "advise/guard_cost.h"

#include <sys/mman.h>

#include <algorithm>

#include "advise/guard.h"
#include "advise/guard_slots.h"
#include "advise/recorder.h"

namespace weft::advise {

Cost fault_cost, breakpoint_cost;

namespace {

constexpr int kTouches = 5;

// Returns a lower and an upper estimate of the time that it takes to notice an access to a watched
// buffer. The time varies with the state of the caches and with other users of the core.
Cost cost_of(volatile char* memory, std::size_t bytes) {
  Windows& windows = recorder.record().sites[0].after;
  windows = {};
  for (int i = 0; i < kTouches; ++i) {
    guard_result(recorder.record().sites[0], const_cast<char*>(memory), bytes, true);
    (void)*memory;
  }
  if (windows.measured < kTouches) return {};
  std::sort(windows.kept, windows.kept + kTouches,
            [](const Bounds& one, const Bounds& other) { return one.most_ns < other.most_ns; });
  return {windows.kept[0].most_ns * 3 / 4, windows.kept[kTouches / 2].most_ns * 2};
}

}  // namespace

// Measures how long it takes to notice an access to a watched buffer. It uses the record's first
// call site for this, and clears it afterwards.
void measure_cost() {
  void* const memory =
      mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  const Cost of_page = cost_of(static_cast<char*>(memory), kPage);
  const Cost of_number = cost_of(static_cast<char*>(memory), sizeof(double));
  munmap(memory, kPage);
  fault_cost = of_page;
  breakpoint_cost = of_number;
  Record& record = recorder.record();
  record.sites[0] = {};
  record.header.events = 0;
  record.header.observing_ns = std::max(of_page.most_ns, of_number.most_ns);
  spent_ns = 0;
}

}  // namespace weft::advise
