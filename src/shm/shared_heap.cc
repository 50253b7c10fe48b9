// Implements SharedHeap. Allocation is first fit by address, in whole pages, since blocks are large
// and few. Pages of free blocks are kept for the next block up to a limit; beyond it all are
// returned to the system at once.
#include "shm/shared_heap.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "base/log.h"
#include "shm/available_memory.h"

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

// Returns whether the program runs under Valgrind, recognised by the libraries that it preloads.
// Its search for leaks reads all writable memory, and would thus allocate every page of the heap.
bool under_valgrind() {
  const char* const preloaded = std::getenv("LD_PRELOAD");
  return preloaded && std::strstr(preloaded, "vgpreload_");
}

// Returns the length of a segment in which a single part can hold the longest block. It may be
// large, since the length of a file costs nothing.
std::int64_t bytes_for(std::int64_t most_bytes) {
  int parts = 1;
  while (SegmentParts::bytes_of(parts - 1) < most_bytes && parts < SegmentParts::kMost) ++parts;
  return SegmentParts::bytes_of_all(parts);
}

// Returns the heaps of this process, whose blocks must be copied when it forks.
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

bool SharedHeap::may_be_made() {
  return !under_valgrind();
}

// Creates the heap (shared_heap.h). Returns an error if the process's address space is limited,
// since a part takes more addresses than its blocks need.
Result<SharedHeap*> SharedHeap::create() {
  if (addresses_are_limited())
    return Error{"shared memory: the process has a limit on its addresses (ulimit -v)"};
  if (!may_be_made()) return Error{"shared memory: valgrind would read and so fill all of it"};
  constexpr std::int64_t kMost_bytes = SegmentParts::bytes_of(SegmentParts::kMost - 1);
  const std::int64_t most = std::min(sysconf(_SC_PHYS_PAGES) * page_bytes(), kMost_bytes);
  auto segment = Segment::create(bytes_for(most), Segment::Mapped::first_page);
  if (!segment) return segment.error();
  auto* heap = new SharedHeap(std::move(*segment), most);
  if (heaps().empty()) pthread_atfork(prepare, in_parent, in_child);
  heaps().push_back(heap);
  return heap;
}

// Requests huge pages for the heap if the system grants them only on request. Parts inherit this
// setting from the first page.
SharedHeap::SharedHeap(Segment segment, std::int64_t most_bytes)
    : parts_(std::move(segment)), most_bytes_(most_bytes) {
  madvise(parts_.segment().data(), size(page_bytes()), MADV_HUGEPAGE);
}

void* SharedHeap::allocate(std::int64_t bytes, std::int64_t alignment) {
  bool clean = false;
  const std::lock_guard lock(mutex_);
  const std::int64_t offset = take(bytes, alignment, &clean);
  return offset < 0 ? nullptr : address_of(offset);
}

void* SharedHeap::allocate_zeroed(std::int64_t bytes) {
  bool clean = false;
  void* block = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t offset = take(bytes, 1, &clean);
    if (offset >= 0) block = address_of(offset);
  }
  if (block && !clean) std::memset(block, 0, size(bytes));
  return block;
}

std::int64_t SharedHeap::take(std::int64_t bytes, std::int64_t alignment, bool* clean) {
  if (bytes > most_bytes_ - used_bytes_ || alignment > most_bytes_) return -1;
  const std::int64_t wanted = round_up(std::max<std::int64_t>(bytes, 1), page_bytes());
  std::int64_t offset = take_free(wanted, alignment, clean);
  const std::int64_t to_align = alignment > page_bytes() ? alignment : 0;
  if (offset < 0 && add_part(wanted + to_align)) offset = take_free(wanted, alignment, clean);
  if (offset >= 0) used_bytes_ += wanted;
  return offset;
}

std::int64_t SharedHeap::take_free(std::int64_t wanted, std::int64_t alignment, bool* clean) {
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [begin, room] = *it;
    const auto address = reinterpret_cast<std::intptr_t>(address_of(begin));
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

// Maps another part of at least `bytes` bytes, and returns whether that succeeded. A forked child
// maps none, since it would share them with its parent.
bool SharedHeap::add_part(std::int64_t bytes) {
  for (int part = 0; shared_ && part < parts_.count(); ++part) {
    if (parts_.at(part) || SegmentParts::bytes_of(part) < bytes) continue;
    if (!parts_.map(part)) return false;
    free_[SegmentParts::begin_of(part)] = {SegmentParts::bytes_of(part), true};
    return true;
  }
  return false;
}

void SharedHeap::release(void* block) {
  const std::lock_guard lock(mutex_);
  const auto it = used_.find(parts_.offset_of(block));
  if (it == used_.end()) return;
  const auto [offset, bytes] = *it;
  used_.erase(it);
  used_bytes_ -= bytes;
  unclean_bytes_ += bytes;
  give_back(offset, {bytes, false});
  if (unclean_bytes_ > kKeptFree_bytes) give_pages_back();
}

// Makes a range free. It is merged with adjacent free ranges of the same part if all bytes of both
// are 0, or if this is unknown for both.
void SharedHeap::give_back(std::int64_t offset, Room room) {
  const auto in_part = [part = SegmentParts::part_with(offset)](std::int64_t other) {
    return SegmentParts::part_with(other) == part;
  };
  const auto behind = free_.find(offset + room.bytes);
  if (behind != free_.end() && in_part(behind->first) && behind->second.clean == room.clean) {
    room.bytes += behind->second.bytes;
    free_.erase(behind);
  }
  const auto next = free_.lower_bound(offset);
  if (next != free_.begin() && in_part(std::prev(next)->first)) {
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
    if (!room.clean) room.clean = madvise(address_of(offset), size(room.bytes), advice) == 0;
    give_back(offset, room);
  }
  unclean_bytes_ = 0;
}

bool SharedHeap::has_blocks() {
  const std::lock_guard lock(mutex_);
  return !used_.empty();
}

std::int64_t SharedHeap::bytes_of(void* block) {
  const std::lock_guard lock(mutex_);
  const auto it = used_.find(parts_.offset_of(block));
  return it == used_.end() ? 0 : it->second;
}

bool SharedHeap::resize(void* block, std::int64_t bytes) {
  const std::int64_t room = bytes_of(block);
  return bytes <= room && bytes > room / 2;
}

namespace {

// Calls action(begin, end) for each range of the `bytes` bytes from `offset` on that has pages.
// Without a file descriptor it cannot tell these, and calls action() for the whole range.
template <class Action>
void for_each_run(int descriptor, std::int64_t offset, std::int64_t bytes, Action action) {
  const std::int64_t end = offset + bytes;
  if (descriptor < 0) return action(offset, end);
  for (std::int64_t hole = offset; hole < end;) {
    const std::int64_t data = lseek(descriptor, hole, SEEK_DATA);
    if (data < 0 || data >= end) return;
    hole = std::min<std::int64_t>(lseek(descriptor, data, SEEK_HOLE), end);
    action(data, hole);
  }
}

}  // namespace

std::int64_t SharedHeap::bytes_with_pages() const {
  std::int64_t sum = 0;
  for (const auto& [offset, bytes] : used_)
    for_each_run(parts_.segment().descriptor(), offset, bytes,
                 [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
  return sum;
}

// Copies a block to private memory. Pages that were never allocated are skipped. If there is no
// memory, no copy is made.
void SharedHeap::copy_block(std::int64_t offset, std::int64_t bytes) {
  void* const made = mmap(nullptr, size(bytes), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return;
  auto* const copy = static_cast<std::byte*>(made);
  for_each_run(parts_.segment().descriptor(), offset, bytes,
               [&](std::int64_t begin, std::int64_t end) {
                 std::memcpy(copy + (begin - offset), address_of(begin), size(end - begin));
               });
  copies_[offset] = copy;
}

// Copies all blocks for a child that is about to be forked, since shared memory stays shared after
// a fork. Most children execute another program at once, so the copies must not exhaust the memory:
// if too little is available, none are made.
void SharedHeap::before_fork() {
  const std::int64_t available = has_blocks() ? available_memory_bytes() : INT64_MAX;
  // Until the fork is over no large block may be allocated, since this thread holds the heap's
  // lock.
  mutex_.lock();
  if (!shared_ || used_.empty()) return;
  const std::int64_t wanted = bytes_with_pages();
  if (wanted <= available / 2 / sharers_) {
    for (const auto& [offset, bytes] : used_) copy_block(offset, bytes);
  }
  if (copies_.size() < used_.size())
    say("no memory for a forked child's copy of " + std::to_string(wanted) +
        " shared bytes: it sees what its parent writes there; run without --shared-heap if that "
        "matters");
}

void SharedHeap::after_fork_in_parent() {
  for (const auto& [offset, copy] : copies_) munmap(copy, size(used_[offset]));
  copies_.clear();
  mutex_.unlock();
}

// Replaces the shared memory of a forked child by private memory, including free ranges. Blocks of
// which there is no copy become private page by page, when the child writes to them.
void SharedHeap::after_fork_in_child() {
  if (!shared_) return mutex_.unlock();
  for (auto& [offset, room] : free_) {
    mmap(address_of(offset), size(room.bytes), PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    room.clean = true;
  }
  const int descriptor = parts_.segment().descriptor();
  for (const auto& [offset, bytes] : used_) {
    const auto copy = copies_.find(offset);
    if (copy != copies_.end())
      mremap(copy->second, size(bytes), size(bytes), MREMAP_MAYMOVE | MREMAP_FIXED,
             address_of(offset));
    else if (descriptor >= 0)
      mmap(address_of(offset), size(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
           descriptor, offset);
  }
  unclean_bytes_ = 0;
  shared_ = false;
  copies_.clear();
  mutex_.unlock();
}

}  // namespace weft
