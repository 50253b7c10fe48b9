#include "advise/waits.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>

#include "advise/findings.h"
#include "advise/record.h"
#include "base/clock.h"

namespace weft::advise {
namespace {

constexpr int kShown = 64;  // number of calls of the program whose lines are kept

// A call of the program. python/weft/check/waits.py reads this layout and that of Waits.
struct Shown {
  std::uint64_t offset;
  char call[40];
  char file[256];
  char where[kWhere];
};

// The rank's state in the file that it shares with `weft check`.
struct Waits {
  std::uint32_t rank, ranks;
  // The number of beginnings and ends of calls; unsuccessful tests are not counted.
  std::atomic<std::uint64_t> calls;
  // The time at which the published call began, or the first of several unsuccessful tests; 0 if
  // the rank is not in an MPI call.
  std::atomic<std::int64_t> began_ns;
  std::atomic<std::int64_t> polled_ns;  // time of the last unsuccessful test; 0: the call waits
  std::atomic<std::uint64_t> polls;     // unsuccessful tests in a row
  std::uint64_t which;                  // index in `lines` of the call that the rank is in
  Shown lines[kShown];
};
Waits* waits = nullptr;
std::atomic<bool> taken{false};

// Publishes the call. Its line is written only if another call has used its entry meanwhile.
void show(CallId call, Called called) {
  static constinit std::uint64_t keys[kShown] = {};
  const Caller caller = find_line(called);
  const std::uint64_t key = key_of_line(call, caller), place = key % kShown;
  waits->which = place;
  if (keys[place] == key) return;
  keys[place] = key;
  Shown& shown = waits->lines[place];
  const Line line = line_of(call, caller);
  shown.offset = line.place.offset;
  std::snprintf(shown.call, sizeof shown.call, "%s", line.call);
  std::snprintf(shown.file, sizeof shown.file, "%s", line.place.file);
  std::snprintf(shown.where, sizeof shown.where, "%s", line.where);
}

}  // namespace

void waits_begin(const char* directory, int rank, int ranks) {
  const std::string path = std::string(directory) + "/waits-" + std::to_string(rank);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  const bool there = posix_fallocate(file, 0, sizeof(Waits)) == 0;
  void* const memory =
      there ? mmap(nullptr, sizeof(Waits), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
            : MAP_FAILED;
  close(file);
  if (memory == MAP_FAILED) return;
  waits = static_cast<Waits*>(memory);
  waits->rank = static_cast<std::uint32_t>(rank);
  waits->ranks = static_cast<std::uint32_t>(ranks);
}

bool wait_begins(CallId call, Called called) {
  if (!waits) return false;
  waits->calls.fetch_add(1, std::memory_order_relaxed);
  if (taken.exchange(true, std::memory_order_acquire)) return false;
  waits->began_ns.store(0, std::memory_order_relaxed);
  show(call, called);
  waits->polls.store(0, std::memory_order_relaxed);
  waits->polled_ns.store(0, std::memory_order_relaxed);
  waits->began_ns.store(now_ns(), std::memory_order_release);
  return true;
}

void wait_ends() {
  waits->began_ns.store(0, std::memory_order_relaxed);
  waits->calls.fetch_add(1, std::memory_order_relaxed);
  taken.store(false, std::memory_order_release);
}

void got_on() {
  if (!waits || waits->polls.load(std::memory_order_relaxed) == 0) return;
  waits->began_ns.store(0, std::memory_order_relaxed);
  waits->polls.store(0, std::memory_order_relaxed);
  waits->calls.fetch_add(1, std::memory_order_relaxed);
}

void polls(CallId call, Called called) {
  if (!waits || taken.exchange(true, std::memory_order_acquire)) return;
  const std::int64_t now = now_ns();
  const std::uint64_t before = waits->polls.fetch_add(1, std::memory_order_relaxed);
  waits->polled_ns.store(now, std::memory_order_relaxed);
  if (before == 0) {
    show(call, called);
    waits->began_ns.store(now, std::memory_order_release);
  }
  taken.store(false, std::memory_order_release);
}

}  // namespace weft::advise
