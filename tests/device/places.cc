// Places for the blocks of cooperative kernels on a device that several processes share.
// WEFT_STANDIN_DEVICE names a file of two numbers that all processes map: how many places there
// are, one on each multiprocessor, and how many are taken. Without the variable each process has a
// count of its own.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "standin.h"

namespace standin {
namespace {

struct Places {
  std::int64_t all, taken;
};

Places* places() {
  static Places own{1, 0};
  static Places* const found = [] {
    const char* const path = std::getenv("WEFT_STANDIN_DEVICE");
    const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return &own;
    void* const mapped = mmap(nullptr, sizeof(Places), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return mapped == MAP_FAILED ? &own : static_cast<Places*>(mapped);
  }();
  return found;
}

}  // namespace

int all_places() {
  return static_cast<int>(places()->all);
}

// Waits until there are enough places and takes all of them at once, since the blocks of a
// cooperative kernel start together.
void take_places(unsigned blocks) {
  Places* const one = places();
  std::int64_t taken = __atomic_load_n(&one->taken, __ATOMIC_RELAXED);
  while (true) {
    if (taken + blocks > one->all) {
      sched_yield();
      taken = __atomic_load_n(&one->taken, __ATOMIC_RELAXED);
    } else if (__atomic_compare_exchange_n(&one->taken, &taken, taken + blocks, false,
                                           __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      return;
    }
  }
}

void give_places_back(unsigned blocks) {
  __atomic_fetch_sub(&places()->taken, static_cast<std::int64_t>(blocks), __ATOMIC_ACQ_REL);
}

}  // namespace standin
