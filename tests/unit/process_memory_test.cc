// What a process shows of its own memory, and what it attaches of other processes'. In these tests
// it attaches its own memory, by a library that counts its calls.
#include "shm/process_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "shm/repeats.h"

namespace weft {
namespace {

constexpr std::size_t kPage = 4096;
constexpr int kOwn = 3, kOther = 5;
using Use = ProcessMemory::Use;

struct Counts {
  std::vector<std::uintptr_t> attached, detached;
  bool refuses = false;
};
Counts counts;

std::int64_t make(void*, std::size_t, int, void*) {
  return 17;
}
std::int64_t get(std::int64_t segment, int, int, void*) {
  return segment == 17 ? 1 : -1;
}
void* attach(Xpmem::Address from, std::size_t, void*) {
  if (counts.refuses) return reinterpret_cast<void*>(-1);
  counts.attached.push_back(static_cast<std::uintptr_t>(from.offset));
  return reinterpret_cast<void*>(from.offset);
}
int detach(void* begin) {
  counts.detached.push_back(reinterpret_cast<std::uintptr_t>(begin));
  return 0;
}

// Pages; those from number `usable` on have no memory behind them.
class Pages {
 public:
  Pages(std::size_t count, std::size_t usable) : bytes_(count * kPage) {
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (usable < count) mprotect(at(usable * kPage), bytes_ - usable * kPage, PROT_NONE);
  }
  ~Pages() { munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::byte* at(std::size_t offset) const { return static_cast<std::byte*>(data_) + offset; }

 private:
  const std::size_t bytes_;
  void* data_;
};

class ProcessMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    counts = {};
    ASSERT_TRUE(memory_->add(kOther, memory_->name()));
    counts = {};
  }
  static ShownBuffer page(std::uintptr_t number, std::uint32_t pages = 1) {
    return {ShownBuffer::kOfProcess - kOther, static_cast<std::int64_t>(number * kPage), 0, pages};
  }

  std::unique_ptr<ProcessMemory> memory_ = ProcessMemory::create({make, get, attach, detach}, kOwn);
};

TEST_F(ProcessMemoryTest, ShowsTheWholePagesOfABuffer) {
  const Pages pages(20, 20);
  const std::byte* const begin = pages.at(2 * kPage + 100);
  const std::int64_t bytes = 16 * kPage;
  const ShownBuffer shown = memory_->shown(begin, bytes, pages.at(5 * kPage + 1), Use::often);
  EXPECT_TRUE(shown.is_of_process());
  EXPECT_TRUE(memory_->is_own(shown));
  EXPECT_EQ(shown.process(), kOwn);
  EXPECT_EQ(shown.offset, reinterpret_cast<std::intptr_t>(pages.at(5 * kPage + 1)));
  EXPECT_EQ(shown.first_page, -3);
  EXPECT_EQ(shown.pages, 17U);
}

TEST_F(ProcessMemoryTest, ShowsWhatIsLargeAndComesAgain) {
  const Pages pages(17, 17);
  const std::byte* const at = pages.at(0);
  const auto is_shown = [&](std::int64_t bytes, Use use) {
    return memory_->shown(at, bytes, at, use).is_of_process();
  };
  EXPECT_FALSE(is_shown(ProcessMemory::kLeast_bytes - 1, Use::often));
  EXPECT_TRUE(is_shown(ProcessMemory::kLeast_bytes, Use::often));
  for (int i = 1; i < ProcessMemory::kRepeats; ++i)
    EXPECT_FALSE(is_shown(ProcessMemory::kLeast_bytes, Use::once)) << i;
  EXPECT_TRUE(is_shown(ProcessMemory::kLeast_bytes, Use::once));
}

// Pages without memory are not shown, since touching them would end other processes.
TEST_F(ProcessMemoryTest, DoesNotShowWhatHasNoPages) {
  const std::int64_t bytes = 16 * kPage;
  for (const auto& [usable, good] : {std::pair{16, true}, {15, false}, {0, false}}) {
    const Pages pages(16, static_cast<std::size_t>(usable));
    const ShownBuffer shown = memory_->shown(pages.at(0), bytes, pages.at(0), Use::often);
    const ShownBuffer elsewhere{7, 8};
    const PublishedBuffers both = confirmed({elsewhere, shown});
    EXPECT_EQ(both.result.memory, good ? shown.memory : ShownBuffer::kNotShared) << usable;
    EXPECT_EQ(both.input.memory, good ? 7 : ShownBuffer::kNotShared) << usable;
  }
}

TEST_F(ProcessMemoryTest, AttachesOnceWhatIsUsedAgain) {
  const auto whole = memory_->attach(page(100, 4));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->at(101 * kPage + 8), reinterpret_cast<std::byte*>(101 * kPage + 8));
  EXPECT_EQ(memory_->attach(page(101, 3)), whole);
  EXPECT_EQ(counts.attached, std::vector{100 * kPage});
  EXPECT_NE(memory_->attach(page(101, 4)), whole);
  EXPECT_TRUE(counts.detached.empty());
}

TEST_F(ProcessMemoryTest, KeepsTheLastUsedAndWhatIsInUse) {
  const auto in_use = memory_->attach(page(1));
  memory_->attach(page(2));
  for (std::uintptr_t i = 0; i < ProcessMemory::kMostKept; ++i) {
    memory_->attach(page(1000 + i));
    memory_->attach(page(2));
  }
  ASSERT_EQ(counts.detached, std::vector{1000 * kPage});
  memory_->attach(page(2));
  EXPECT_EQ(counts.attached.size(), 2 + ProcessMemory::kMostKept);
}

TEST_F(ProcessMemoryTest, DetachesWhatWasDroppedInUseWhenItIsNot) {
  auto in_use = memory_->attach(page(1));
  for (std::uintptr_t i = 0; i < ProcessMemory::kMostKept; ++i) memory_->attach(page(1000 + i));
  EXPECT_TRUE(counts.detached.empty());
  in_use.reset();
  EXPECT_EQ(counts.detached, std::vector{1 * kPage});
}

TEST_F(ProcessMemoryTest, SaysWhatCannotBeAttached) {
  counts.refuses = true;
  EXPECT_FALSE(memory_->attach(page(1)));
  counts.refuses = false;
  EXPECT_TRUE(memory_->attach(page(1)));
  const ShownBuffer of_unknown{ShownBuffer::kOfProcess - 99, 0, 0, 1};
  EXPECT_FALSE(memory_->attach(of_unknown));
}

TEST_F(ProcessMemoryTest, TriesOutEachProcess) {
  const auto good = memory_->name();
  counts.refuses = true;
  EXPECT_FALSE(memory_->add(8, good));
  counts.refuses = false;
  EXPECT_FALSE(memory_->add(8, {good.segment + 1, good.trial}));
  const Pages other(1, 1), none(1, 0);
  EXPECT_FALSE(memory_->add(8, {good.segment, reinterpret_cast<std::uint64_t>(other.at(0))}));
  EXPECT_FALSE(memory_->add(8, {good.segment, reinterpret_cast<std::uint64_t>(none.at(0))}));
  EXPECT_EQ(counts.detached, counts.attached);
  EXPECT_TRUE(memory_->add(8, good));
}

TEST(Xpmem, IsNotOpenedWhereItIsOffOrNotThere) {
  EXPECT_FALSE(Xpmem::open("off"));
  EXPECT_FALSE(Xpmem::open("/nowhere/libxpmem.so.0"));
  EXPECT_FALSE(Xpmem::open("libc.so.6"));  // the C library has none of XPMEM's functions
}

TEST(Repeats, CountsEachPlaceByItself) {
  Repeats repeats;
  for (int i = 1; i < 300; ++i) {
    EXPECT_EQ(repeats.count(0x7f0000001000), std::min(i, 255));
    EXPECT_EQ(repeats.count(0x7f0000205010), std::min(i, 255));
  }
}

}  // namespace
}  // namespace weft
