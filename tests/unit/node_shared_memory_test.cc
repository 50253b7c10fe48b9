// Node memory that communicators use again. Two pools in one process stand for those of two ranks.
#include "shm/node_shared_memory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <deque>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace weft {
namespace {

constexpr std::int64_t kBufferBytes = 64 << 10, kFurther = 1 << 20;

NodeSharedMemory::Group group_of(std::vector<int> members, bool is_alone) {
  return {std::make_shared<const std::vector<int>>(std::move(members)), is_alone};
}
const NodeSharedMemory::Group kGroup = group_of({3, 5}, true);

class NodeRoomTest : public testing::Test {
 protected:
  using Room = std::shared_ptr<NodeSharedMemory>;
  struct Pair {
    Room first, second;
  };

  static std::shared_ptr<Segment> owned(Result<Segment> segment) {
    EXPECT_TRUE(segment) << segment.error().message;
    return std::make_shared<Segment>(std::move(*segment));
  }

  Pair made(const NodeSharedMemory::Group& group = kGroup) {
    auto segment = owned(Segment::create(NodeSharedMemory::bytes(2, kBufferBytes) + kFurther));
    auto attached = owned(Segment::attach(segment->name()));
    return {first_.add(segment, group, 0, kBufferBytes),
            second_.add(attached, group, 1, kBufferBytes)};
  }

  // Takes kept memory as two ranks do that make a communicator.
  Pair taken(const NodeSharedMemory::Group& group = kGroup) {
    auto room = first_.take(group);
    return {room, room ? second_.take(group, room->token()) : nullptr};
  }

  // Executes a collective in which each rank waits for the other.
  static void use(const Pair& pair, Ends ends = Ends::in_order) {
    Schedule schedule;
    const NodeBufferUse one = pair.first->node_buffers().next(ends, schedule);
    const NodeBufferUse other = pair.second->node_buffers().next(ends, schedule);
    for (const NodeBufferUse& turn : {one, other}) {
      EXPECT_TRUE(turn.may_begin());
      turn.signal(1);
    }
    EXPECT_EQ(one.look_for(1, 1, 1), NodeBufferUse::Seen::yes);
    EXPECT_EQ(other.look_for(0, 1, 1), NodeBufferUse::Seen::yes);
    for (const NodeBufferUse& turn : {one, other}) turn.end(true);
  }

  static SegmentAllocator rest_of(const Room& room) {
    return SegmentAllocator(std::shared_ptr<SegmentAllocator::Space>(room, &room->rest()));
  }

  NodeSharedMemories first_, second_;
};

TEST_F(NodeRoomTest, TheNextOfTheSameRanksGetsItWithItsNodeBuffersAsTheyAre) {
  Pair pair = made();
  const std::uint64_t token = pair.first->token();
  for (int i = 0; i < 7; ++i) use(pair, i % 3 == 0 ? Ends::any_time : Ends::in_order);
  for (int times = 0; times < 3; ++times) {
    pair = {};
    pair = taken();
    ASSERT_TRUE(pair.first && pair.second);
    EXPECT_EQ(pair.first->token(), token);
    EXPECT_EQ(pair.second->node_buffers().taken(), 7u + 5u * static_cast<unsigned>(times));
    for (int i = 0; i < 5; ++i) use(pair, i % 2 == 0 ? Ends::any_time : Ends::in_order);
  }
}

TEST_F(NodeRoomTest, NobodyGetsItBeforeAllHaveLeft) {
  Pair pair = made();
  pair.first = nullptr;
  EXPECT_FALSE(first_.take(kGroup));
  pair.second = nullptr;
  EXPECT_TRUE(first_.take(kGroup));
}

TEST_F(NodeRoomTest, APieceOfItIsAUse) {
  Pair pair = made();
  const auto piece = rest_of(pair.second).take(kPageBytes);
  pair = {};
  EXPECT_FALSE(first_.take(kGroup));
}

TEST_F(NodeRoomTest, OtherRanksDoNotGetIt) {
  Pair pair = made();
  pair = {};
  EXPECT_FALSE(first_.take(group_of({3, 6}, true)));
  EXPECT_FALSE(first_.take({kGroup.members, false}));
  EXPECT_TRUE(first_.take(kGroup));
}

TEST_F(NodeRoomTest, WhatWasGivenAwayIsZeroAgain) {
  Pair pair = made();
  for (const std::int64_t bytes : {kPageBytes, kFurther, 2 * kPageBytes}) {
    use(pair);
    for (const Room& room : {pair.first, pair.second}) {
      SegmentAllocator rest = rest_of(room);
      std::fill_n(rest.take(bytes).get(), bytes, std::byte{7});
      EXPECT_TRUE(rest.fits(kFurther - bytes));
      EXPECT_FALSE(rest.fits(kFurther - bytes + 1));
    }
    pair = {};
    pair = taken();
    ASSERT_TRUE(pair.first && pair.second);
    use(pair);
    for (const Room& room : {pair.first, pair.second}) {
      const auto piece = rest_of(room).take(kFurther);
      EXPECT_EQ(std::count(piece.get(), piece.get() + kFurther, std::byte{0}), kFurther);
    }
    pair = {};
    pair = taken();
  }
}

TEST_F(NodeRoomTest, PagesOfLongCallsGoBackToTheSystem) {
  Pair pair = made();
  const auto segment = pair.first->rest().segment;
  const auto resident = [&] {
    struct stat file {};
    EXPECT_EQ(fstat(segment->descriptor(), &file), 0);
    return file.st_blocks * 512;
  };
  std::fill_n(pair.first->node_buffers().memory() + NodeBuffers::bytes(2, kBufferBytes) / 2,
              kBufferBytes, std::byte{1});
  EXPECT_GE(resident(), kBufferBytes);
  for (const Room& room : {pair.first, pair.second}) room->spread();
  pair = {};
  EXPECT_LE(resident(), kPageBytes);
  pair = taken();
  ASSERT_TRUE(pair.first && pair.second);
  use(pair);
}

TEST_F(NodeRoomTest, OneIsNotUsedAgainWhere) {
  const auto after = [&](auto what_happens) {
    Pair pair = made();
    use(pair);
    what_happens(pair);
    pair = {};
    const bool again = first_.take(kGroup) != nullptr;
    made();  // makes both pools drop the memory that must not be kept
    first_.take(kGroup);
    return again;
  };
  Schedule schedule;
  EXPECT_TRUE(after([](const Pair&) {}));
  EXPECT_FALSE(after([](const Pair& pair) { pair.first->lose(); }));
  EXPECT_FALSE(after([](const Pair& pair) { pair.second->lose(); }));
  EXPECT_FALSE(after([&](const Pair& pair) {  // the ranks have used the node buffers differently
    pair.second->node_buffers().next(Ends::in_order, schedule).end(false);
  }));
  EXPECT_FALSE(after([&](const Pair& pair) {  // a call has not ended
    pair.first->node_buffers().next(Ends::any_time, schedule);
    pair.second->node_buffers().next(Ends::any_time, schedule).end(false);
  }));
  EXPECT_FALSE(after([](const Pair& pair) {  // the pages cannot be given back
    // Calls the system directly, since sanitizers make mlock() do nothing.
    ASSERT_EQ(syscall(SYS_mlock, pair.second->node_buffers().memory(), 1), 0);
    for (const Room& room : {pair.first, pair.second}) room->spread();
  }));
}

TEST_F(NodeRoomTest, SoManyAreKeptAndAllRanksHaveThem) {
  constexpr std::size_t kMany = 3 * NodeSharedMemories::kMost;
  std::vector<Room> of_first, of_second;
  for (std::size_t i = 0; i < kMany; ++i) {
    const Pair pair = made();
    of_first.push_back(pair.first);
    of_second.push_back(pair.second);
  }
  while (!of_first.empty()) of_first.pop_back();
  EXPECT_EQ(first_.kept(), kMany);  // all are kept while the second rank still uses them
  of_second.clear();
  made();
  EXPECT_LE(first_.kept(), NodeSharedMemories::kMost + 1);
  EXPECT_LE(second_.kept(), NodeSharedMemories::kMost + 1);
  std::vector<Pair> all;
  for (Pair pair = taken(); pair.first; pair = taken()) {
    EXPECT_TRUE(pair.second);
    all.push_back(pair);
  }
  EXPECT_GE(all.size(), NodeSharedMemories::kMost - 1);
}

TEST_F(NodeRoomTest, WhatOthersDoNotLeaveIsGivenUp) {
  constexpr std::size_t kMany = 2 * NodeSharedMemories::kMostInAll;
  std::vector<Room> of_second;
  for (std::size_t i = 0; i < kMany; ++i) of_second.push_back(made().second);
  EXPECT_LE(first_.kept(), NodeSharedMemories::kMostInAll + 1);
  of_second.clear();
  made();
  EXPECT_LE(second_.kept(), NodeSharedMemories::kMost + 1);
  std::vector<Pair> all;
  for (Pair pair = taken(); pair.first; pair = taken()) {
    EXPECT_TRUE(pair.second);
    all.push_back(pair);
  }
  EXPECT_GE(all.size(), 1u);
}

TEST_F(NodeRoomTest, WhatTheFirstHasTakenIsThereForTheOthersThoughItFailsSoon) {
  made();
  Room first = first_.take(kGroup);
  ASSERT_TRUE(first);
  const std::uint64_t token = first->token();
  first->lose();
  first = nullptr;
  made(group_of({3, 6}, true));  // takes back what was given back, and drops what must not be kept
  EXPECT_TRUE(second_.take(kGroup, token));
  EXPECT_FALSE(first_.take(kGroup));
}

TEST_F(NodeRoomTest, AForkedChildHasNoPartInIt) {
  Pair pair = made();
  const pid_t child = fork();
  if (child == 0) {
    pair = {};
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  pair.first = nullptr;
  EXPECT_FALSE(first_.take(kGroup));
  pair.second = nullptr;
  EXPECT_TRUE(first_.take(kGroup));
}

// Each rank is a thread. The ranks meet when memory is made, and leave it at any time.
class RanksAtOnce {
 public:
  static constexpr int kRanks = 3, kTimes = 1'500;

  void run() {
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < kRanks; ++rank) ranks.emplace_back([this, rank] { work(rank); });
    for (std::thread& rank : ranks) rank.join();
  }
  int taken_over = 0;

 private:
  using Room = std::shared_ptr<NodeSharedMemory>;
  static constexpr std::int64_t kPiece = 2 * kPageBytes;

  Room room_for(int rank, NodeSharedMemories& own) {
    Room room = rank == 0 ? own.take(group_) : nullptr;
    std::shared_ptr<Segment> segment;
    if (rank == 0) {
      taken_over += room != nullptr;
      if (!room)
        segment = std::make_shared<Segment>(
            std::move(*Segment::create(NodeSharedMemory::bytes(kRanks, kBufferBytes) + kPiece)));
      told_token_ = room ? room->token() : 0;
      if (segment) told_name_ = segment->name();
    }
    meet_.arrive_and_wait();
    if (rank > 0 && told_token_ != 0) room = own.take(group_, told_token_);
    if (rank > 0 && told_token_ == 0)
      segment = std::make_shared<Segment>(std::move(*Segment::attach(told_name_)));
    meet_.arrive_and_wait();  // the others have read the name and the token
    return segment ? own.add(segment, group_, rank, kBufferBytes) : room;
  }

  static void use(NodeSharedMemory& room, int rank, bool any_time) {
    Schedule schedule;
    const NodeBufferUse turn =
        room.node_buffers().next(any_time ? Ends::any_time : Ends::in_order, schedule);
    while (!turn.may_begin()) std::this_thread::yield();
    turn.signal(1);
    for (int other = 0; other < kRanks; ++other)
      while (other != rank && turn.look_for(other, 1, 16) != NodeBufferUse::Seen::yes)
        std::this_thread::yield();
    turn.end(!any_time);
  }

  // Each rank checks and fills its part of a common piece.
  static void take_piece(const Room& room, int rank) {
    const auto piece =
        SegmentAllocator(std::shared_ptr<SegmentAllocator::Space>(room, &room->rest()))
            .take(kPiece);
    const std::int64_t part = kPiece / kRanks;
    std::byte* const own = piece.get() + rank * part;
    EXPECT_EQ(std::count(own, own + part, std::byte{0}), part);
    std::fill_n(own, part, std::byte{5});
  }

  void work(int rank) {
    NodeSharedMemories own;
    std::mt19937 alike(1), apart(static_cast<unsigned>(rank) + 2);
    std::deque<Room> alive;
    for (int i = 0; i < kTimes; ++i) {
      Room room = room_for(rank, own);
      EXPECT_TRUE(room);
      if (!room) break;
      const auto what = alike();
      for (unsigned turn = 0; turn < what % 5; ++turn) use(*room, rank, (what >> turn & 8) != 0);
      if (what % 7 == 0) take_piece(room, rank);
      if (what % 11 == 0) room->spread();
      if (apart() % 50 == 0) room->lose();
      alive.push_back(std::move(room));
      while (alive.size() > apart() % 4) alive.pop_front();
    }
    meet_.arrive_and_drop();
  }

  const NodeSharedMemory::Group group_ = group_of({0, 1, 2}, true);
  std::barrier<> meet_{kRanks};
  std::uint64_t told_token_ = 0;
  SegmentName told_name_{};
};

TEST(NodeRoomOfThreads, RanksThatComeAndGoAtOnceAlwaysHaveTheSame) {
  RanksAtOnce ranks;
  ranks.run();
  EXPECT_GT(ranks.taken_over, RanksAtOnce::kTimes / 4);
}

}  // namespace
}  // namespace weft
