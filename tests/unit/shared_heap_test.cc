// SharedHeap: blocks do not overlap, are aligned, and zeroed if asked for; only used parts have
// pages; other processes see what they attach; a forked child has a copy of its own.
#include "shm/shared_heap.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace weft {
namespace {

constexpr std::int64_t kBlock_bytes = 300'000;

// Returns one heap for all tests, since a heap lasts as long as its process.
SharedHeap& heap() {
  static SharedHeap* const made = *SharedHeap::create();
  return *made;
}

bool all_are(const void* block, std::int64_t bytes, int value) {
  const auto* at = static_cast<const unsigned char*>(block);
  return std::all_of(at, at + bytes, [&](unsigned char byte) { return byte == value; });
}

std::int64_t pages_in_use() {
  const SegmentName& name = heap().name();
  struct stat file;
  fstat(static_cast<int>(name.descriptor), &file);
  return file.st_blocks;
}

std::int64_t addresses_in_use() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0;
  file >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

// Runs `action` in a child and returns its exit status. The child exits by a system call, past the
// thread sanitizer, which would miss the parent's threads there.
template <class Do>
int status_of_child(Do action) {
  const pid_t child = fork();
  if (child == 0) syscall(SYS_exit_group, action());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(SharedHeap, BlocksAreApartWhateverComesAndGoes) {
  std::mt19937 random(1);
  std::map<unsigned char*, std::pair<std::int64_t, unsigned char>> blocks;
  for (int i = 0; i < 2000; ++i) {
    if (random() % 5 < 3) {
      const std::int64_t bytes = 1 + random() % 200'000;
      const std::int64_t alignment = std::int64_t{1} << random() % 18;
      auto* block = static_cast<unsigned char*>(heap().allocate(bytes, alignment));
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U);
      EXPECT_GE(heap().bytes_of(block), bytes);
      EXPECT_TRUE(heap().contains(block) && heap().contains(block + bytes - 1));
      const auto value = static_cast<unsigned char>(1 + random() % 255);
      std::memset(block, value, bytes);
      blocks[block] = {bytes, value};
    } else if (!blocks.empty()) {
      const auto it = std::next(blocks.begin(), random() % blocks.size());
      ASSERT_TRUE(all_are(it->first, it->second.first, it->second.second));
      heap().release(it->first);
      blocks.erase(it);
    }
  }
  for (const auto& [block, written] : blocks) {
    ASSERT_TRUE(all_are(block, written.first, written.second));
    heap().release(block);
  }
}

TEST(SharedHeap, ZeroedMeansZeroAlsoWhereSomethingWasBefore) {
  void* before = heap().allocate(kBlock_bytes, 1);
  std::memset(before, 1, kBlock_bytes);
  heap().release(before);
  void* after = heap().allocate_zeroed(kBlock_bytes);
  EXPECT_EQ(after, before);
  EXPECT_TRUE(all_are(after, kBlock_bytes, 0));
  heap().release(after);
}

TEST(SharedHeap, GivesPagesBack) {
  constexpr std::int64_t kMuch_bytes = 100 << 20;
  const std::int64_t before = pages_in_use();
  void* block = heap().allocate(kMuch_bytes, 1);
  std::memset(block, 1, kMuch_bytes);
  EXPECT_GE(pages_in_use() - before, (kMuch_bytes - (64 << 20)) / 512);
  heap().release(block);
  EXPECT_LE(pages_in_use(), before);
}

TEST(SharedHeap, RefusesMoreThanThereIs) {
  EXPECT_EQ(heap().allocate(INT64_MAX / 2, 1), nullptr);
  EXPECT_EQ(heap().allocate(1, INT64_MAX / 4 + 1), nullptr);
}

TEST(SharedHeap, KeepsTheSizeThatStillFits) {
  void* block = heap().allocate(kBlock_bytes, 1);
  EXPECT_TRUE(heap().resize(block, kBlock_bytes - 1000));
  EXPECT_TRUE(heap().resize(block, kBlock_bytes));
  EXPECT_FALSE(heap().resize(block, kBlock_bytes + 100'000));
  EXPECT_FALSE(heap().resize(block, kBlock_bytes / 3));
  heap().release(block);
}

TEST(SharedHeap, IsSeenByWhoAttaches) {
  auto* block = static_cast<unsigned char*>(heap().allocate(kBlock_bytes, 1));
  auto seen = Segment::attach(heap().name(), Segment::Mapped::first_page);
  ASSERT_TRUE(seen) << seen.error().message;
  SegmentParts parts(std::move(*seen));
  std::memset(block, 7, kBlock_bytes);
  const std::int64_t offset = heap().parts().offset_of(block);
  const int part = SegmentParts::part_with(offset);
  const std::byte* there = parts.map(part) + (offset - SegmentParts::begin_of(part));
  EXPECT_NE(reinterpret_cast<const unsigned char*>(there), block);
  EXPECT_TRUE(all_are(there, kBlock_bytes, 7));
  heap().release(block);
}

// Batch systems limit a process's addresses, and users watch them.
TEST(SharedHeap, TakesAddressesAsItIsUsed) {
  EXPECT_EQ(status_of_child([] {
              const std::int64_t before = addresses_in_use();
              SharedHeap* const fresh = *SharedHeap::create();
              if (addresses_in_use() - before > 1 << 20) return 1;
              constexpr std::int64_t kMuch_bytes = 300 << 20;
              if (!fresh->allocate(1000, 1) || !fresh->allocate(kMuch_bytes, 1)) return 2;
              return addresses_in_use() - before > 2 * kMuch_bytes ? 3 : 0;
            }),
            0);
}

TEST(SharedHeap, ServesABlockAsLongAsHalfTheMachinesMemory) {
  const std::int64_t half = sysconf(_SC_PHYS_PAGES) / 2 * sysconf(_SC_PAGESIZE);
  auto* block = static_cast<unsigned char*>(heap().allocate(half, 1));
  ASSERT_NE(block, nullptr);
  block[half - 1] = 1;
  EXPECT_EQ(heap().allocate(half + (2 << 20), 1), nullptr);  // more than is left
  heap().release(block);
}

TEST(SharedHeap, AChildHasACopyOfItsOwn) {
  void* block = heap().allocate(kBlock_bytes, 1);
  std::memset(block, 5, kBlock_bytes);
  const int status = status_of_child([&] {
    const bool same = all_are(block, kBlock_bytes, 5) && !heap().is_shared();
    std::memset(block, 9, kBlock_bytes);
    void* more = heap().allocate_zeroed(2 * kBlock_bytes);
    const bool zero = all_are(more, 2 * kBlock_bytes, 0);
    std::memset(more, 9, 2 * kBlock_bytes);
    heap().release(block);
    const int grandchild = status_of_child([&] { return all_are(more, 100, 9) ? 0 : 1; });
    return same && zero && grandchild == 0 ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(all_are(block, kBlock_bytes, 5));
  void* after = heap().allocate_zeroed(2 * kBlock_bytes);
  EXPECT_TRUE(all_are(after, 2 * kBlock_bytes, 0));
  heap().release(after);
  heap().release(block);
}

// Copying must not read pages that do not exist, since reading would create them.
TEST(SharedHeap, AForkFillsNoPages) {
  constexpr std::int64_t kMuch_bytes = 200 << 20;
  auto* block = static_cast<unsigned char*>(heap().allocate_zeroed(kMuch_bytes));
  block[kMuch_bytes / 2] = 6;
  const std::int64_t before = pages_in_use();
  EXPECT_EQ(status_of_child(
                [&] { return block[kMuch_bytes / 2] == 6 && block[kMuch_bytes - 1] == 0 ? 0 : 1; }),
            0);
  EXPECT_EQ(pages_in_use(), before);
  heap().release(block);
}

// Without memory for a copy, the child shares its parent's pages until it writes to them.
TEST(SharedHeap, AForkCopiesNoMoreThanThereIsMemoryFor) {
  auto* block = static_cast<unsigned char*>(heap().allocate(kBlock_bytes, 1));
  std::memset(block, 5, kBlock_bytes);
  heap().set_sharers(1 << 30);
  testing::internal::CaptureStderr();
  const int status = status_of_child([&] {
    const bool same = all_are(block, kBlock_bytes, 5);
    std::memset(block, 9, kBlock_bytes);
    return same && all_are(block, kBlock_bytes, 9) ? 0 : 1;
  });
  const std::string said = testing::internal::GetCapturedStderr();
  heap().set_sharers(1);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(all_are(block, kBlock_bytes, 5));
  EXPECT_NE(said.find("weft: no memory for a forked child's copy of 30"), std::string::npos)
      << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  heap().release(block);
}

TEST(SharedHeap, ManyThreadsTakeAndGiveWhileAnotherForks) {
  std::vector<std::thread> threads;
  for (int number = 1; number <= 3; ++number)
    threads.emplace_back([number] {
      for (int i = 0; i < 300; ++i) {
        void* block = heap().allocate(kBlock_bytes / number, 1);
        std::memset(block, number, 5000);
        ASSERT_TRUE(all_are(block, 5000, number));
        heap().release(block);
      }
    });
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(status_of_child([] { return heap().allocate(kBlock_bytes, 1) ? 0 : 1; }), 0);
  for (std::thread& thread : threads) thread.join();
}

TEST(SharedHeap, IsNotMadeWhereAddressesAreLimited) {
  EXPECT_EQ(status_of_child([] {
              const rlimit limit{std::uint64_t{1} << 40, std::uint64_t{1} << 40};
              if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
              return SharedHeap::create() ? 1 : 0;
            }),
            0);
}

TEST(SharedHeap, IsNotMadeUnderValgrind) {
  EXPECT_EQ(status_of_child([] {
              setenv("LD_PRELOAD", "/usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so", 1);
              return SharedHeap::create() ? 1 : 0;
            }),
            0);
}

}  // namespace
}  // namespace weft
