// Shared segments between processes: which can be attached, which are refused; nothing is left.
#include "shm/segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include "shm/segment_allocator.h"
#include "shm/segment_parts.h"

namespace weft {
namespace {

constexpr std::int64_t kBytes = 1 << 20;

Segment make_segment(std::int64_t bytes = kBytes) {
  auto segment = Segment::create(bytes);
  EXPECT_TRUE(segment) << segment.error().message;
  return std::move(*segment);
}

// Runs `body` in a child process and returns whether it returned true.
bool in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int lines_with(const std::string& part) {
  std::ifstream maps("/proc/self/maps");
  int found = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find(part) != std::string::npos) ++found;
  return found;
}

std::int64_t mapped_bytes(const std::string& part) {
  std::ifstream maps("/proc/self/maps");
  std::int64_t bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(part) == std::string::npos) continue;
    const auto between = line.find('-');
    bytes += std::stoll(line.substr(between + 1), nullptr, 16) - std::stoll(line, nullptr, 16);
  }
  return bytes;
}

int open_descriptors() {
  int open = 0;
  for (int i = 0; i < 1024; ++i) open += fcntl(i, F_GETFD) >= 0;
  return open;
}

std::string refusal(const SegmentName& name) {
  const auto attached = Segment::attach(name);
  return attached ? "attached" : attached.error().message;
}

TEST(Segment, IsZeroAndWholePages) {
  const Segment segment = make_segment(5);
  EXPECT_EQ(segment.bytes(), sysconf(_SC_PAGESIZE));
  for (std::int64_t i = 0; i < segment.bytes(); ++i) ASSERT_EQ(segment.data()[i], std::byte{0});
  EXPECT_FALSE(Segment::create(0));
  EXPECT_FALSE(Segment::create(-1));
}

TEST(Segment, IsOneMemoryInAllProcesses) {
  const Segment segment = make_segment();
  const auto add_one = [name = segment.name()] {
    auto attached = Segment::attach(name);
    if (!attached || attached->bytes() != kBytes) return false;
    int last;
    std::byte* at = attached->data() + kBytes - sizeof last;
    std::memcpy(&last, at, sizeof last);
    ++last;
    std::memcpy(at, &last, sizeof last);
    return true;
  };
  EXPECT_TRUE(in_child(add_one));
  EXPECT_TRUE(in_child(add_one));
  int last;
  std::memcpy(&last, segment.data() + kBytes - sizeof last, sizeof last);
  EXPECT_EQ(last, 2);
}

TEST(Segment, NobodyAttachesAfterClosing) {
  Segment segment = make_segment();
  auto before = Segment::attach(segment.name());
  ASSERT_TRUE(before);
  segment.close_to_others();
  EXPECT_NE(refusal(segment.name()).find("cannot reach"), std::string::npos);
  const Segment next = make_segment();  // gets the same descriptor
  EXPECT_EQ(next.name().descriptor, segment.name().descriptor);
  EXPECT_NE(refusal(segment.name()).find("another file"), std::string::npos);
  segment.data()[7] = std::byte{9};
  EXPECT_EQ(before->data()[7], std::byte{9});
}

TEST(Segment, EveryPartOfTheNameIsChecked) {
  const Segment segment = make_segment();
  SegmentName forged = segment.name();
  forged.token ^= 1;
  EXPECT_NE(refusal(forged).find("another file"), std::string::npos);
  forged = segment.name();
  ++forged.inode;
  EXPECT_NE(refusal(forged).find("another file"), std::string::npos);
  forged = segment.name();
  ++forged.device;
  EXPECT_NE(refusal(forged).find("another file"), std::string::npos);
  forged = segment.name();
  forged.bytes *= 2;
  EXPECT_NE(refusal(forged).find("another file"), std::string::npos);
  forged = segment.name();
  forged.process = 0;
  EXPECT_NE(refusal(forged).find("process 0"), std::string::npos);
}

// A pipe must not be opened: a reader would hang in open() without a writer.
TEST(Segment, APipeInItsPlaceIsRefused) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Segment segment = make_segment();
  SegmentName name = segment.name();
  name.descriptor = ends[0];
  EXPECT_NE(refusal(name).find("another file"), std::string::npos);
  close(ends[0]);
  close(ends[1]);
}

TEST(Segment, LeavesNothing) {
  const int descriptors = open_descriptors();
  {
    Segment segment = make_segment();
    auto attached = Segment::attach(segment.name());
    ASSERT_TRUE(attached);
    Segment moved = std::move(segment);
    moved = std::move(*attached);
    EXPECT_EQ(lines_with("memfd:weft"), 1);
    moved.close_to_others();
    moved.data()[0] = std::byte{1};
  }
  EXPECT_EQ(lines_with("memfd:weft"), 0);
  EXPECT_EQ(open_descriptors(), descriptors);
}

// Some systems allow a process 256 descriptors, and there may be as many ranks on a node.
TEST(Segment, WhoAttachesKeepsNoDescriptor) {
  const Segment segment = make_segment();
  const int descriptors = open_descriptors();
  auto attached = Segment::attach(segment.name());
  ASSERT_TRUE(attached);
  EXPECT_EQ(open_descriptors(), descriptors);
  segment.data()[kBytes - 1] = std::byte{8};
  EXPECT_EQ(attached->data()[kBytes - 1], std::byte{8});
}

TEST(Segment, ItsPartsAreMappedOneByOne) {
  constexpr std::int64_t kLong = std::int64_t{1} << 40, kAt = kLong / 2 + (1 << 20);
  auto segment = Segment::create(kLong, Segment::Mapped::first_page);
  ASSERT_TRUE(segment) << segment.error().message;
  auto attached = Segment::attach(segment->name(), Segment::Mapped::first_page);
  ASSERT_TRUE(attached) << attached.error().message;
  EXPECT_LT(mapped_bytes("memfd:weft"), 1 << 20);
  std::byte *here = segment->map_part(kAt, kBytes), *there = attached->map_part(kAt, kBytes);
  ASSERT_TRUE(here && there);
  EXPECT_NE(here, there);
  EXPECT_LT(mapped_bytes("memfd:weft"), 4 << 20);
  here[kBytes - 1] = std::byte{3};
  EXPECT_EQ(there[kBytes - 1], std::byte{3});
  segment->data()[5] = std::byte{4};
  EXPECT_EQ(segment->map_part(0, kBytes)[5], std::byte{4});
}

// With locked memory, mapping must not allocate each page at once.
TEST(Segment, HasNoPagesBeforeTheyAreUsedEvenWhereMemoryIsLocked) {
  EXPECT_TRUE(in_child([] {
    if (mlockall(MCL_FUTURE) != 0) return false;
    constexpr std::int64_t kLong = 64 << 20;
    auto segment = Segment::create(kLong);
    if (!segment || !segment->map_part(kLong / 2, kLong / 4)) return false;
    struct stat file;
    fstat(segment->descriptor(), &file);
    return file.st_blocks * 512 < kBytes;
  }));
}

TEST(Segment, IsLeftOutOfCoreDumps) {
  const Segment segment = make_segment();
  std::ifstream maps("/proc/self/smaps");
  bool is_segment = false, found = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:weft") != std::string::npos) is_segment = found = true;
    if (!is_segment || !line.starts_with("VmFlags:")) continue;
    EXPECT_NE(line.find(" dd"), std::string::npos) << line;
    is_segment = false;
  }
  EXPECT_TRUE(found);
}

TEST(SegmentParts, EachOffsetHasItsPart) {
  std::int64_t end = 0;
  for (int part = 0; part < SegmentParts::kMost; ++part) {
    EXPECT_EQ(SegmentParts::begin_of(part), end);
    end += SegmentParts::bytes_of(part);
    EXPECT_EQ(SegmentParts::part_with(SegmentParts::begin_of(part)), part);
    EXPECT_EQ(SegmentParts::part_with(end - 1), part);
    EXPECT_EQ(SegmentParts::bytes_of_all(part + 1), end);
  }
}

TEST(SegmentParts, AnAddressIsFoundInThePartThatIsMapped) {
  auto segment = Segment::create(SegmentParts::bytes_of_all(4), Segment::Mapped::first_page);
  ASSERT_TRUE(segment) << segment.error().message;
  SegmentParts parts(std::move(*segment));
  EXPECT_EQ(parts.count(), 4);
  EXPECT_EQ(parts.offset_of(parts.segment().data()), -1);
  for (const int part : {2, 0, 3}) {
    const std::byte* const begin = parts.map(part);
    ASSERT_NE(begin, nullptr);
    EXPECT_EQ(parts.map(part), begin);
    const std::int64_t last = SegmentParts::bytes_of(part) - 1;
    EXPECT_EQ(parts.offset_of(begin), SegmentParts::begin_of(part));
    EXPECT_EQ(parts.offset_of(begin + last), SegmentParts::begin_of(part) + last);
  }
  EXPECT_EQ(parts.at(1), nullptr);
  EXPECT_EQ(parts.offset_of(&parts), -1);
}

TEST(Segment, OutlivesItsKilledMaker) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t maker = fork();
  if (maker == 0) {
    auto segment = Segment::create(kBytes);
    std::memset(segment->data(), 5, kBytes);
    const auto written = write(ready[1], &segment->name(), sizeof(SegmentName));
    while (written > 0) pause();
    _exit(1);
  }
  SegmentName name;
  ASSERT_EQ(read(ready[0], &name, sizeof name), static_cast<ssize_t>(sizeof name));
  auto attached = Segment::attach(name);
  ASSERT_TRUE(attached) << attached.error().message;
  kill(maker, SIGKILL);
  waitpid(maker, nullptr, 0);
  EXPECT_EQ(attached->data()[kBytes - 1], std::byte{5});
  attached->data()[0] = std::byte{6};
  EXPECT_NE(refusal(name).find("has ended"), std::string::npos);
  close(ready[0]);
  close(ready[1]);
}

TEST(Segment, AForkedChildsExitDisturbsNothing) {
  const Segment segment = make_segment();
  segment.data()[3] = std::byte{4};
  EXPECT_TRUE(in_child([&] {
    const bool seen = segment.data()[3] == std::byte{4};
    segment.data()[3] = std::byte{5};
    return seen;
  }));
  EXPECT_EQ(segment.data()[3], std::byte{5});
}

TEST(Segment, MoreThanTheAddressSpaceIsAnError) {
  EXPECT_FALSE(Segment::create(std::int64_t{1} << 62));
}

TEST(Segment, ALimitOfFileSizesIsAnError) {
  EXPECT_TRUE(in_child([] {
    const rlimit small{kBytes - 1, kBytes - 1};
    setrlimit(RLIMIT_FSIZE, &small);
    const auto refused = Segment::create(kBytes);
    return !refused && refused.error().message.find("ulimit") != std::string::npos;
  }));
}

TEST(Segment, NoDescriptorsLeftIsAnError) {
  EXPECT_TRUE(in_child([] {
    const rlimit none{3, 3};
    setrlimit(RLIMIT_NOFILE, &none);
    return !Segment::create(kBytes);
  }));
}

// A program may close all descriptors that it did not open, and then open its own.
TEST(Segment, LeavesAFileAloneThatTookItsDescriptor) {
  const int null = open("/dev/null", O_RDWR);
  int number = -1;
  {
    Segment segment = make_segment();
    number = static_cast<int>(segment.name().descriptor);
    ASSERT_EQ(dup2(null, number), number);
    segment.close_to_others();
  }
  EXPECT_GE(fcntl(number, F_GETFD), 0);
  close(number);
  close(null);
}

TEST(SegmentAllocator, GivesEachPieceOnce) {
  SegmentAllocator room(std::make_shared<Segment>(make_segment()));
  const std::int64_t half = kBytes / 2;
  const auto first = room.take(half);
  EXPECT_TRUE(room.fits(half));
  EXPECT_FALSE(room.fits(half + 1));
  const auto second = room.take(half);
  EXPECT_EQ(second.get(), first.get() + half);
  EXPECT_FALSE(room.fits(1));
  EXPECT_FALSE(SegmentAllocator().fits(1));
}

TEST(SegmentAllocator, LivesAsLongAsItsPieces) {
  const int before = lines_with("memfd:weft");
  std::shared_ptr<std::byte> piece;
  {
    SegmentAllocator room(std::make_shared<Segment>(make_segment()));
    piece = room.take(kBytes);
  }
  piece.get()[kBytes - 1] = std::byte{9};
  EXPECT_EQ(lines_with("memfd:weft"), before + 1);
  piece.reset();
  EXPECT_EQ(lines_with("memfd:weft"), before);
}

}  // namespace
}  // namespace weft
