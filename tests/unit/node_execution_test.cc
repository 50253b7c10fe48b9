// Executes schedules in a node's memory with a thread for each rank, one operation after the other
// or two at once. The thread sanitizer checks here what the verifier proves of each schedule, and
// what NodeBuffers keeps apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <list>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "call_memory.h"
#include "engine/shared_memory_call.h"
#include "simulated_call.h"
#include "transport/transport.h"

namespace weft::test {
namespace {

constexpr int kOperations = 200;
constexpr std::size_t kPage = 4096;
constexpr int kMostRanks = 5;

// How a rank reaches the buffers of most other ranks.
enum class Reach : std::uint8_t { seen, attached, copied };

struct Operation {
  Operation(const Call& of, Ends end) : call(of), ends(end), schedules(build_all(of)), memory(of) {}

  // Tries the direct algorithm first. The buffers of rank `which` are not shown or, if buffers have
  // to be attached, that rank cannot attach any; -1: there is no such rank.
  void try_first(const Algorithm* algorithm, int which, Reach how) {
    Call other = call;
    other.algorithm = algorithm;
    direct = build_all(other);
    if (direct[0].node_bytes == 0) direct.clear();  // an empty call needs no direct schedule
    (how == Reach::attached ? unable : hidden) = which;
    reach = how;
  }

  Call call;
  Ends ends;
  std::vector<Schedule> schedules;
  std::vector<Schedule> direct;  // empty: no direct schedule is tried
  int hidden = -1, unable = -1;
  Reach reach = Reach::seen;
  CallMemory memory;
};

// The range of one process: offsets are addresses.
SharedRanges& all_addresses() {
  static auto* all = [] {
    auto* ranges = new SharedRanges;
    ranges->add({0, nullptr, 0, {}});
    return ranges;
  }();
  return *all;
}

// Returns the ranks of an operation, which are also their numbers in MPI_COMM_WORLD.
std::span<const int> all_ranks(std::size_t count) {
  static constexpr std::array<int, 8> kFirst{0, 1, 2, 3, 4, 5, 6, 7};
  return std::span(kFirst).first(count);
}

// Ranks are in one process, so attached memory keeps its address; `unable` cannot attach any.
struct Processes {
  std::vector<std::unique_ptr<ProcessMemory>> able, unable;
};

const Processes& processes() {
  static const auto one = [](auto...) -> std::int64_t { return 1; };
  static const auto same = [](Xpmem::Address from, std::size_t, void*) {
    return reinterpret_cast<void*>(from.offset);
  };
  static const auto nothing = [](void*) { return 0; };
  static const Processes* const all = [] {
    auto* made = new Processes;
    for (int rank = 0; rank < kMostRanks; ++rank) {
      for (auto* kind : {&made->able, &made->unable})
        kind->push_back(ProcessMemory::create({one, one, same, nothing}, rank));
      ProcessMemory& able = *made->able.back();
      for (int other = 0; other < kMostRanks; ++other) EXPECT_TRUE(able.add(other, able.name()));
    }
    return made;
  }();
  return *all;
}

ProcessMemory* processes_of(int rank, bool able) {
  return (able ? processes().able : processes().unable)[static_cast<std::size_t>(rank)].get();
}

// Returns the rank's copier. The kernel copies from this very process.
OneCopy* copies_of(int rank) {
  static const auto* const all = [] {
    auto* made = new std::vector<std::unique_ptr<OneCopy>>;
    for (int i = 0; i < kMostRanks; ++i) made->push_back(OneCopy::create(i));
    for (const auto& one : *made)
      for (int other = 0; other < kMostRanks; ++other)
        EXPECT_TRUE(one->add(other, (*made)[static_cast<std::size_t>(other)]->name()));
    return made;
  }();
  return (*all)[static_cast<std::size_t>(rank)].get();
}

// One rank's part of an operation.
class Part {
 public:
  Part(Operation& operation, int rank, NodeBuffers& node_buffers)
      : schedule_(operation.schedules[static_cast<std::size_t>(rank)]),
        direct_(operation.direct.empty() ? nullptr
                                         : &operation.direct[static_cast<std::size_t>(rank)]),
        temp_(static_cast<std::size_t>(
            std::max(schedule_.temp_bytes, direct_ ? direct_->temp_bytes : 0))),
        peers_(all_addresses(), all_ranks(operation.schedules.size()),
               processes_of(rank, rank != operation.unable), copies_of(rank)),
        turn_(turn(operation.ends, node_buffers)),
        operands_{{operation.memory.send(rank), operation.memory.recv(rank), temp_.data()},
                  find_kernel(Element::float64, Operator::sum),
                  &peers_},
        execution_(schedule_, nullptr, &operands_, &turn_),
        alone_(schedule_, operands_, turn_),
        is_alone_(rank % 2 != 0 && !direct_ && !schedule_.program.empty()) {
    operands_.use(turn_, schedule_);
    const Location input = outgoing(schedule_.shape, 0).at;
    peers_.begin({shown(operands_.address(input), rank, operation),
                  shown(operands_.base[1], rank, operation)});
    if (direct_) execution_.try_first(*direct_);
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  bool advance() {
    if (!is_alone_) return *execution_.advance();
    const SharedMemoryCall::State state = alone_.progress(3);
    EXPECT_NE(state, SharedMemoryCall::State::in_different_calls);
    return state == SharedMemoryCall::State::over;
  }

  bool was_direct() const { return execution_.was_direct(); }

 private:
  NodeBufferUse turn(Ends ends, NodeBuffers& node_buffers) const {
    const Schedule& first = direct_ ? *direct_ : schedule_;
    return first.node_bytes > 0 ? node_buffers.next(ends, first) : NodeBufferUse();
  }
  // Returns how the rank shows its buffer to the others, if at all.
  static ShownBuffer shown(const std::byte* at, int rank, const Operation& operation) {
    if (rank == operation.hidden) return {ShownBuffer::kNotShared, 0};
    const auto address = reinterpret_cast<std::intptr_t>(at);
    if (operation.reach == Reach::seen || rank == 0) return {0, address};
    const auto others = all_ranks(operation.schedules.size());
    if (operation.reach == Reach::copied) return copies_of(rank)->shown(at, 1, at, others);
    return {ShownBuffer::kOfProcess - rank, address, 0, 1};
  }

  const Schedule& schedule_;
  const Schedule* const direct_;
  std::vector<std::byte> temp_;
  PeerBuffers peers_;
  NodeBufferUse turn_;
  Operands operands_;
  Execution execution_;
  SharedMemoryCall alone_;  // executes the program on odd ranks
  const bool is_alone_;
};

class Node {
 public:
  explicit Node(int ranks)
      : ranks_(ranks), memory_(static_cast<std::byte*>(::operator new(bytes(), kAlignment))) {
    std::fill_n(memory_.get(), bytes(), std::byte{});
  }

  void run(std::deque<Operation>& operations) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks_; ++rank)
      threads.emplace_back([this, rank, &operations] { run_rank(rank, operations); });
    for (std::thread& thread : threads) thread.join();
  }

  // Returns how many ranks' parts were carried out by the direct schedule.
  int direct() const { return direct_; }

 private:
  static constexpr std::align_val_t kAlignment{kPage};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
  };

  std::int64_t buffer_bytes() const { return most_node_bytes(ranks_); }
  std::size_t bytes() const {
    return static_cast<std::size_t>(NodeBuffers::bytes(ranks_, buffer_bytes()));
  }

  // Two operations that end at any time may be incomplete. Odd ranks advance the last one first.
  void run_rank(int rank, std::deque<Operation>& operations) {
    NodeBuffers node_buffers(memory_.get(), rank, ranks_, buffer_bytes());
    std::list<Part> outstanding;
    const auto advance_all = [&] {
      outstanding.remove_if([this](Part& part) { return advance(part); });
      std::this_thread::yield();
    };
    for (Operation& operation : operations) {
      if (operation.ends == Ends::any_time) {
        while (outstanding.size() > 1) advance_all();
        outstanding.emplace(rank % 2 == 0 ? outstanding.end() : outstanding.begin(), operation,
                            rank, node_buffers);
        continue;
      }
      Part part(operation, rank, node_buffers);
      while (!advance(part)) advance_all();
    }
    while (!outstanding.empty()) advance_all();
  }

  bool advance(Part& part) {
    if (!part.advance()) return false;
    if (part.was_direct()) ++direct_;
    return true;
  }

  const int ranks_;
  std::unique_ptr<std::byte, Free> memory_;
  std::atomic<int> direct_{0};
};

// If the buffers of one rank cannot be seen, the direct schedule ends on all ranks alike, without
// having changed anything.
TEST(DirectExecution, EndsADirectScheduleWhereABufferCannotBeSeen) {
  constexpr int kRanks = 3;
  for (const Kind kind : {Kind::allreduce, Kind::bcast, Kind::gather}) {
    Call call{.size = kRanks, .count = 100, .type = &test_types()[1]};
    call.algorithm = find_algorithm(kind, "node-direct");
    for (int hidden = 0; hidden < kRanks; ++hidden) {
      const std::vector<Schedule> schedules = build_all(call);
      const CallMemory untouched(call);
      CallMemory memory(call);
      const std::int64_t bytes = schedules[0].node_bytes;
      std::vector<std::byte> node(static_cast<std::size_t>(NodeBuffers::bytes(kRanks, bytes)));
      std::deque<NodeBuffers> node_buffers;
      std::deque<NodeBufferUse> turns;
      std::deque<PeerBuffers> peers;
      std::deque<Operands> operands;
      std::deque<Execution> executions;
      for (int rank = 0; rank < kRanks; ++rank) {
        const Schedule& schedule = schedules[static_cast<std::size_t>(rank)];
        turns.push_back(node_buffers.emplace_back(node.data(), rank, kRanks, bytes)
                            .next(Ends::in_order, schedule));
        PublishedBuffers shown;
        if (rank == hidden) shown.input.memory = ShownBuffer::kNotShared;
        peers.emplace_back(all_addresses(), all_ranks(kRanks)).begin(shown);
        operands.push_back({{memory.send(rank), memory.recv(rank), nullptr},
                            find_kernel(Element::float64, Operator::sum),
                            &peers.back()});
        operands.back().use(turns.back(), schedule);
        executions.emplace_back(schedule, nullptr, &operands.back(), &turns.back());
      }
      for (int turn = 0; turn < 2; ++turn) {
        for (Execution& execution : executions)
          if (!execution.declined()) static_cast<void>(execution.advance());
      }
      for (const Execution& execution : executions) EXPECT_TRUE(execution.declined());
      EXPECT_EQ(memory.difference(), untouched.difference()) << call.text();
    }
  }
}

// Rank 0 sends to rank 1 another length than rank 1 expects. Rank 1 fails, and ranks that need rank
// 1 fail, too, instead of waiting for ever.
TEST(IrregularExecution, EndsWhereLengthsDiffer) {
  constexpr int kRanks = 3;
  constexpr std::int64_t kExpected = 1'000, kPieces = 5 * Tuning{}.chunk_bytes;
  for (const bool by_program : {false, true})
    for (const std::int64_t sent : {std::int64_t{0}, kExpected + 1, kPieces}) {
      std::vector<Schedule> schedules;
      for (int rank = 0; rank < kRanks; ++rank) {
        Shape shape;
        shape.kind = Kind::alltoallv;
        shape.rank = rank;
        shape.size = kRanks;
        shape.on_one_node = true;
        for (int peer = 0; peer < kRanks; ++peer) {
          const bool is_sender = rank == 0 && peer == 1;
          shape.send_blocks.push_back({is_sender ? sent : kExpected, 0, Unit::send});
          shape.recv_blocks.push_back({kExpected, peer * kExpected, Unit::recv});
        }
        schedules.push_back(build(*find_algorithm(Kind::alltoallv, "node-flat"), shape));
      }
      const std::int64_t bytes = schedules[0].node_bytes;
      std::vector<std::byte> node(static_cast<std::size_t>(NodeBuffers::bytes(kRanks, bytes)));
      std::vector<std::byte> send(kPieces), recv(kRanks * kExpected);
      std::deque<NodeBuffers> node_buffers;
      std::deque<NodeBufferUse> turns;
      std::deque<Operands> operands;
      std::deque<Execution> executions;
      std::deque<SharedMemoryCall> alone;
      for (int rank = 0; rank < kRanks; ++rank) {
        const Schedule& schedule = schedules[static_cast<std::size_t>(rank)];
        turns.push_back(node_buffers.emplace_back(node.data(), rank, kRanks, bytes)
                            .next(Ends::in_order, schedule));
        operands.push_back({{send.data(), recv.data(), nullptr}});
        operands.back().use(turns.back(), schedule);
        executions.emplace_back(schedule, nullptr, &operands.back(), &turns.back());
        alone.emplace_back(schedule, operands.back(), turns.back());
      }
      enum class End : std::uint8_t { none, good, failed };
      std::array<End, kRanks> ends{};
      for (int turn = 0; turn < 20; ++turn)
        for (std::size_t rank = 0; rank < kRanks; ++rank) {
          if (ends[rank] != End::none) continue;
          if (by_program) {
            const SharedMemoryCall::State state = alone[rank].progress(1);
            if (state == SharedMemoryCall::State::over) ends[rank] = End::good;
            if (state == SharedMemoryCall::State::in_different_calls) ends[rank] = End::failed;
          } else {
            const auto done = executions[rank].advance();
            if (!done) ends[rank] = End::failed;
            if (done && *done) ends[rank] = End::good;
          }
        }
      EXPECT_EQ(ends[1], End::failed) << sent;
      for (const End end : ends) EXPECT_NE(end, End::none) << sent;
      if (sent == kPieces) {
        EXPECT_EQ(ends[0], End::failed);
      }
      for (std::size_t rank = 0; rank < kRanks; ++rank)
        EXPECT_TRUE(node_buffers[rank].are_at_rest());
    }
}

// Leaves out MPI_Alltoallw, whose blocks of different types only a transport can pack.
std::vector<const Algorithm*> node_algorithms() {
  std::vector<const Algorithm*> all;
  for (const Algorithm& algorithm : algorithms())
    if (needs_node(algorithm.needs) && algorithm.kind != Kind::alltoallw) all.push_back(&algorithm);
  return all;
}

// These counts fit into a slot, into one chunk, or into many.
constexpr std::int64_t kCounts[] = {0, 1, 5, 100, 3'000, 20'000};

Operation random_operation(std::mt19937& random, int ranks, Ends ends) {
  static const std::vector<const Algorithm*> algorithms = node_algorithms();
  // There are two domains, even with two ranks.
  Call call{.size = ranks, .type = &test_types()[1], .placing = Placing::cyclic_2};
  call.algorithm = algorithms[random() % algorithms.size()];
  call.root = has_root(call.kind()) ? static_cast<int>(random() % static_cast<unsigned>(ranks)) : 0;
  call.count = kCounts[random() % std::size(kCounts)];
  call.in_place = has_in_place(call.kind()) && random() % 2 == 0;
  Operation operation(call, ends);
  const Algorithm* direct = find_algorithm(call.kind(), "node-direct");
  const unsigned ways = reduces(call.kind()) ? 2 : 3;  // the kernel copies but does not reduce
  if (direct && !is_direct(*call.algorithm) && random() % 2 == 0)
    operation.try_first(direct, static_cast<int>(random() % static_cast<unsigned>(ranks + 1)) - 1,
                        static_cast<Reach>(random() % ways));
  return operation;
}

class NodeExecution : public testing::TestWithParam<int> {};

TEST_P(NodeExecution, OperationsInTurnGiveWhatTheOracleSays) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  std::deque<Operation> operations;
  for (int i = 0; i < kOperations; ++i) {
    const Ends ends = random() % 3 == 0 ? Ends::any_time : Ends::in_order;
    operations.push_back(random_operation(random, GetParam(), ends));
  }
  Node node(GetParam());
  node.run(operations);
  for (const Operation& operation : operations)
    EXPECT_EQ(operation.memory.difference(), "") << operation.call.text();
  EXPECT_GT(node.direct(), 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, NodeExecution, testing::Values(2, 3, kMostRanks));

}  // namespace
}  // namespace weft::test
