// First fit by address, in whole pages: blocks are large and few. Free pages are kept for the next
// block up to a limit, then given back all at once.
#include "shm/shared_heap.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "base/log.h"

namespace weft {
namespace {

constexpr std::int64_t kKeptFree_bytes = 64 << 20;

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::int64_t page_bytes() {
  static const std::int64_t bytes = sysconf(_SC_PAGESIZE);
  return bytes;
}

std::size_t size(std::int64_t bytes) {
  return static_cast<std::size_t>(bytes);
}

// Its search for leaks reads all memory that may be written, which would give the heap every page
// of the machine's. It loads libraries of its own into the process.
bool under_valgrind() {
  const char* const preloaded = std::getenv("LD_PRELOAD");
  return preloaded && std::strstr(preloaded, "vgpreload_");
}

// Those that copy their blocks at a fork.
std::vector<SharedHeap*>& heaps() {
  static auto* all = new std::vector<SharedHeap*>;
  return *all;
}

void prepare() {
  for (SharedHeap* heap : heaps()) heap->before_fork();
}
void in_parent() {
  for (SharedHeap* heap : heaps()) heap->after_fork_in_parent();
}
void in_child() {
  for (SharedHeap* heap : heaps()) heap->after_fork_in_child();
}

}  // namespace

// Addresses are what a limit on them (ulimit -v) counts, used or not. All ranks' heaps have to fit
// into one process's, hence the most.
Result<SharedHeap*> SharedHeap::create() {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    return Error{"shared memory: the process has a limit on its addresses (ulimit -v)"};
  if (under_valgrind()) return Error{"shared memory: valgrind would read and so fill all of it"};
  constexpr std::int64_t kMost_bytes = std::int64_t{64} << 30;
  auto segment = Segment::create(std::min(sysconf(_SC_PHYS_PAGES) * page_bytes(), kMost_bytes));
  if (!segment) return segment.error();
  auto* heap = new SharedHeap(std::move(*segment));
  if (heaps().empty()) pthread_atfork(prepare, in_parent, in_child);
  heaps().push_back(heap);
  return heap;
}

// Large pages where the system leaves them to be asked for; no core dump of what has no pages.
SharedHeap::SharedHeap(Segment segment)
    : segment_(std::move(segment)), begin_(segment_.data()), bytes_(segment_.bytes()) {
  free_[0] = {bytes_, true};
  madvise(begin_, size(bytes_), MADV_HUGEPAGE);
  madvise(begin_, size(bytes_), MADV_DONTDUMP);
}

void* SharedHeap::allocate(std::int64_t bytes, std::int64_t alignment) {
  bool clean = false;
  const std::lock_guard lock(mutex_);
  const std::int64_t offset = take(bytes, alignment, &clean);
  return offset < 0 ? nullptr : begin_ + offset;
}

void* SharedHeap::allocate_zeroed(std::int64_t bytes) {
  bool clean = false;
  void* block = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t offset = take(bytes, 1, &clean);
    if (offset >= 0) block = begin_ + offset;
  }
  if (block && !clean) std::memset(block, 0, size(bytes));
  return block;
}

std::int64_t SharedHeap::take(std::int64_t bytes, std::int64_t alignment, bool* clean) {
  if (bytes > bytes_ || alignment > bytes_) return -1;
  const std::int64_t wanted = round_up(std::max<std::int64_t>(bytes, 1), page_bytes());
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [begin, room] = *it;
    const auto address = reinterpret_cast<std::intptr_t>(begin_) + begin;
    const std::int64_t before = round_up(address, std::max(alignment, page_bytes())) - address;
    if (before + wanted > room.bytes) continue;
    free_.erase(it);
    if (before > 0) free_[begin] = {before, room.clean};
    const std::int64_t behind = room.bytes - before - wanted;
    if (behind > 0) free_[begin + before + wanted] = {behind, room.clean};
    if (!room.clean) unclean_bytes_ -= wanted;
    used_[begin + before] = wanted;
    *clean = room.clean;
    return begin + before;
  }
  return -1;
}

void SharedHeap::release(void* block) {
  const std::lock_guard lock(mutex_);
  const auto it = used_.find(offset_of(block));
  if (it == used_.end()) return;
  const auto [offset, bytes] = *it;
  used_.erase(it);
  unclean_bytes_ += bytes;
  give_back(offset, {bytes, false});
  if (unclean_bytes_ > kKeptFree_bytes) give_pages_back();
}

// Rooms that touch are one; whether they are clean must be the same.
void SharedHeap::give_back(std::int64_t offset, Room room) {
  const auto behind = free_.find(offset + room.bytes);
  if (behind != free_.end() && behind->second.clean == room.clean) {
    room.bytes += behind->second.bytes;
    free_.erase(behind);
  }
  const auto next = free_.lower_bound(offset);
  if (next != free_.begin()) {
    Room& before = std::prev(next)->second;
    if (std::prev(next)->first + before.bytes == offset && before.clean == room.clean) {
      before.bytes += room.bytes;
      return;
    }
  }
  free_[offset] = room;
}

void SharedHeap::give_pages_back() {
  const int advice = shared_ ? MADV_REMOVE : MADV_DONTNEED;
  Rooms rooms;
  rooms.swap(free_);
  for (auto& [offset, room] : rooms) {
    if (!room.clean) room.clean = madvise(begin_ + offset, size(room.bytes), advice) == 0;
    give_back(offset, room);
  }
  unclean_bytes_ = 0;
}

std::int64_t SharedHeap::bytes_of(void* block) {
  const std::lock_guard lock(mutex_);
  const auto it = used_.find(offset_of(block));
  return it == used_.end() ? 0 : it->second;
}

bool SharedHeap::resize(void* block, std::int64_t bytes) {
  const std::int64_t room = bytes_of(block);
  return bytes <= room && bytes > room / 2;
}

// In place of the child's: at a fork, shared memory would stay shared.
void SharedHeap::before_fork() {
  mutex_.lock();
  if (!shared_) return;
  for (const auto& [offset, bytes] : used_) {
    void* copy =
        mmap(nullptr, size(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) {
      say("no memory for a forked child's copy of " + std::to_string(bytes) +
          " shared bytes: the child must not write there");
      continue;
    }
    std::memcpy(copy, begin_ + offset, size(bytes));
    copies_[offset] = static_cast<std::byte*>(copy);
  }
}

void SharedHeap::after_fork_in_parent() {
  for (const auto& [offset, copy] : copies_) munmap(copy, size(used_[offset]));
  copies_.clear();
  mutex_.unlock();
}

// What is free becomes memory of the child's own, too.
void SharedHeap::after_fork_in_child() {
  if (shared_) {
    for (const auto& [offset, room] : free_)
      mmap(begin_ + offset, size(room.bytes), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    for (const auto& [offset, copy] : copies_)
      mremap(copy, size(used_[offset]), size(used_[offset]), MREMAP_MAYMOVE | MREMAP_FIXED,
             begin_ + offset);
    for (auto& [offset, room] : free_) room.clean = true;
    unclean_bytes_ = 0;
    shared_ = false;
  }
  copies_.clear();
  mutex_.unlock();
}

}  // namespace weft
