// Copies by the kernel from a forked child, which shows a buffer that its parent does not have; and
// which calls the rule gives to the kernel.
#include "shm/one_copy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <span>
#include <vector>

#include "select/one_copy_rule.h"
#include "shm/process_memory.h"

namespace weft {
namespace {

constexpr int kOwn = 2, kOther = 7;
constexpr std::int64_t kBytes = 100'001;

std::byte filling(std::int64_t i) {
  return static_cast<std::byte>(i * 31 % 251);
}

// A process with a buffer, which exits when its parent tells it to.
class Other {
 public:
  Other() {
    EXPECT_EQ(pipe(to_parent_.data()), 0);
    EXPECT_EQ(pipe(to_child_.data()), 0);
    child_ = fork();
    if (child_ == 0) serve();
    EXPECT_EQ(read(to_parent_[0], &told, sizeof told), static_cast<ssize_t>(sizeof told));
  }
  ~Other() { end(); }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;

  void end() {
    if (child_ <= 0) return;
    const char word = 0;
    EXPECT_EQ(write(to_child_[1], &word, 1), 1);
    waitpid(child_, nullptr, 0);
    child_ = 0;
    for (const int end : {to_parent_[0], to_parent_[1], to_child_[0], to_child_[1]}) close(end);
  }

  struct {
    OneCopy::Name name;
    std::byte* buffer;
  } told{};

 private:
  [[noreturn]] void serve() {
    const auto copies = OneCopy::create(kOther);
    std::vector<std::byte> buffer(kBytes);
    for (std::int64_t i = 0; i < kBytes; ++i) buffer[static_cast<std::size_t>(i)] = filling(i);
    told = {copies->name(), buffer.data()};
    char word = 0;
    const bool met = write(to_parent_[1], &told, sizeof told) == sizeof told &&
                     read(to_child_[0], &word, 1) == 1;
    _exit(met ? 0 : 1);
  }

  std::array<int, 2> to_parent_{}, to_child_{};
  pid_t child_ = -1;
};

TEST(OneCopy, ReadsAnotherProcess) {
  Other other;
  const auto copies = OneCopy::create(kOwn);
  ASSERT_TRUE(copies->add(kOther, other.told.name));
  std::vector<std::byte> here(kBytes);
  copies->read(kOther, other.told.buffer + 1, here.data(), kBytes - 1);
  for (std::int64_t i = 0; i + 1 < kBytes; ++i)
    ASSERT_EQ(here[static_cast<std::size_t>(i)], filling(i + 1)) << i;
  EXPECT_EQ(copies->copied_bytes(), kBytes - 1);
}

TEST(OneCopy, TakesNoOtherProcessForTheOneThatWasNamed) {
  Other other;
  const auto copies = OneCopy::create(kOwn);
  OneCopy::Name wrong = other.told.name;
  ++wrong.token;
  EXPECT_FALSE(copies->add(kOther, wrong));
  wrong = other.told.name;
  wrong.address = 0;
  EXPECT_FALSE(copies->add(kOther, wrong));
  EXPECT_FALSE(copies->add(kOther, {}));
  const OneCopy::Name name = other.told.name;
  other.end();
  EXPECT_FALSE(copies->add(kOther, name));
}

// A process tests when it first needs another one whether it reaches it. A buffer that it shows
// tells its readers to test first, until all of them are known to reach it.
TEST(OneCopy, AsksAnotherProcessWhenItIsNeeded) {
  Other other;
  const auto copies = OneCopy::create(kOwn);
  copies->expect(kOther, other.told.name);
  copies->expect(kOther + 1, {1, 0, 0});
  EXPECT_FALSE(copies->reaches(kOther + 2));
  EXPECT_FALSE(copies->reaches(kOther + 1));
  EXPECT_TRUE(copies->reaches(kOther));
  std::vector<std::byte> here(kBytes);
  copies->read(kOther, other.told.buffer, here.data(), kBytes);
  EXPECT_EQ(here[7], filling(7));
  const std::vector<int> some{kOwn, kOther}, all{kOwn, kOther, kOther + 1};
  const auto is_to_be_asked = [&](std::span<const int> ranks) {
    const ShownBuffer shown = copies->shown(here.data(), kBytes, here.data(), ranks);
    EXPECT_TRUE(OneCopy::has_shown(shown));
    EXPECT_TRUE(copies->is_own(shown));
    EXPECT_EQ(OneCopy::owner_of(shown), kOwn);
    return OneCopy::is_to_be_asked(shown);
  };
  EXPECT_TRUE(is_to_be_asked(some));
  copies->all_reach(some);
  EXPECT_FALSE(is_to_be_asked(some));
  EXPECT_TRUE(is_to_be_asked(all));
  copies->all_reach(all);
  EXPECT_FALSE(is_to_be_asked(all));
}

// Memory that is gone ends the process, as a load would, but with a message.
TEST(OneCopyDeathTest, EndsTheProcessWhereMemoryIsGone) {
  const auto copies = OneCopy::create(kOwn);
  ASSERT_TRUE(copies->add(kOther, copies->name()));
  std::vector<std::byte> here(4096);
  EXPECT_EXIT(copies->read(kOther, nullptr, here.data(), 4096), testing::KilledBySignal(SIGABRT),
              "rank 7's buffer cannot be reached any more .*4096 bytes left.*the job ends");
}

TEST(OneCopy, ShowsNothingOfAProcessThatIsNotToBeRead) {
  const auto copies = OneCopy::create(kOwn);
  const std::vector<std::byte> buffer(kBytes);
  const PublishedBuffers shown{copies->shown(buffer.data(), kBytes, buffer.data() + 5), {}};
  EXPECT_TRUE(OneCopy::has_shown(shown.input));
  EXPECT_TRUE(copies->is_own(shown.input));
  EXPECT_EQ(shown.input.offset, reinterpret_cast<std::intptr_t>(buffer.data() + 5));
  EXPECT_EQ(confirmed(shown).input.memory, shown.input.memory);
  ASSERT_EQ(prctl(PR_SET_DUMPABLE, 0), 0);
  EXPECT_EQ(confirmed(shown).input.memory, ShownBuffer::kNotShared);
  EXPECT_FALSE(OneCopy::create(kOwn));
  ASSERT_EQ(prctl(PR_SET_DUMPABLE, 1), 0);
  EXPECT_EQ(confirmed(shown).input.memory, shown.input.memory);
}

Shape shape_of(Kind kind, std::int64_t block) {
  Shape shape;
  shape.kind = kind;
  shape.size = 4;
  shape.send.count = shape.recv.count = block;
  if (kind == Kind::allgatherv) shape.recv_blocks.assign(4, {block, 0, Unit::recv});
  return shape;
}

TEST(OneCopyRule, CountsTheBytesOfABlock) {
  constexpr std::int64_t kOfOne = 4096, kOfAll = 1000;
  const OneCopyRule rule{kOfOne, kOfAll};
  for (const Kind kind : {Kind::bcast, Kind::gather, Kind::scatter}) {
    EXPECT_TRUE(rule.takes(shape_of(kind, kOfOne)));
    EXPECT_FALSE(rule.takes(shape_of(kind, kOfOne - 1)));
  }
  for (const Kind kind : {Kind::allgather, Kind::allgatherv, Kind::alltoall}) {
    EXPECT_TRUE(rule.takes(shape_of(kind, kOfAll)));
    EXPECT_FALSE(rule.takes(shape_of(kind, kOfAll - 1)));
  }
  for (const Kind kind : {Kind::allreduce, Kind::reduce, Kind::reduce_scatter_block, Kind::scan})
    EXPECT_FALSE(rule.takes(shape_of(kind, 1 << 20)));
  Shape in_place = shape_of(Kind::alltoall, kOfAll);
  in_place.in_place = true;
  EXPECT_FALSE(rule.takes(in_place));
  EXPECT_TRUE(rule.takes_any());
  EXPECT_FALSE(OneCopyRule{}.takes_any());
  EXPECT_FALSE(OneCopyRule{}.takes(shape_of(Kind::alltoall, 1 << 20)));
}

}  // namespace
}  // namespace weft
