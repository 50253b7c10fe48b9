// Collectives of kernels alone, of all kinds, lengths and forms, on 2 to 5 ranks in one process and
// on many. They run on the stand-in for CUDA's driver, and are compared with a loop on the
// processor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "group.h"

namespace weft::gpu {
namespace {

// Ranks with a stream each, which have met.
class Ranks {
 public:
  explicit Ranks(int ranks) {
    use_device();
    for (int rank = 0; rank < ranks; ++rank) {
      runtimes_.push_back(std::make_unique<Runtime>(**driver()));
      pointers_.push_back(runtimes_.back().get());
      streams_.push_back(nullptr);
      EXPECT_EQ(cuStreamCreate(&streams_.back(), 1), kSuccess);
    }
    group_ = meet_all(pointers_, {});
    EXPECT_EQ(group_.why_not, "");
  }
  ~Ranks() {
    for (auto& one : runtimes_) one->agent().stop();
    standin_forget_errors();
    standin_run_last_block_first(false);
    synchronise();
    for (Stream one : streams_) cuStreamDestroy_v2(one);
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  std::size_t size() const { return streams_.size(); }
  Runtime& runtime(std::size_t rank) { return *runtimes_[rank]; }
  Stream& stream(std::size_t rank) { return streams_[rank]; }
  Group& group() { return group_; }
  void synchronise() {
    for (Stream one : streams_) EXPECT_EQ(cuStreamSynchronize(one), kSuccess);
  }

 private:
  std::vector<std::unique_ptr<Runtime>> runtimes_;
  std::vector<Runtime*> pointers_;
  std::vector<Stream> streams_;
  Group group_;
};

enum Kind { kAllreduce, kReduceScatter, kAllgather, kAlltoall, kBroadcast, kKinds };

// Problem: a collective with its data. counts: elements of each rank's part, in a reduce_scatter
// and in an alltoall; otherwise one number for all.
struct Problem {
  Kind kind = kAllreduce;
  weft_gpu_type type = WEFT_GPU_UINT8;
  weft_gpu_op op = WEFT_GPU_SUM;
  int root = -1;
  std::vector<std::size_t> counts;
  std::vector<Bytes> given{}, right{};  // by rank

  bool reduces() const { return kind == kAllreduce || kind == kReduceScatter; }
  std::size_t published() const { return std::reduce(counts.begin(), counts.end()); }
  std::size_t before(std::size_t rank) const {
    return std::reduce(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(rank));
  }
};

Bytes combined_all(const Problem& problem) {
  Bytes all = problem.given.front();
  for (std::size_t rank = 1; rank < problem.given.size(); ++rank) {
    for (std::size_t at = 0; at < all.size(); at += element_bytes(problem.type)) {
      const auto combine = [&]<class T>(T) {
        T sum, one;
        std::memcpy(&sum, all.data() + at, sizeof sum);
        std::memcpy(&one, problem.given[rank].data() + at, sizeof one);
        sum = combined(problem.op, sum, one);
        std::memcpy(all.data() + at, &sum, sizeof sum);
      };
      if (problem.type == WEFT_GPU_UINT8) combine(std::uint8_t{});
      if (problem.type == WEFT_GPU_INT16) combine(std::int16_t{});
      if (problem.type == WEFT_GPU_INT32) combine(std::int32_t{});
      if (problem.type == WEFT_GPU_INT64) combine(std::int64_t{});
    }
  }
  return all;
}

// Fills in what each rank gives and must get.
void fill(Problem* problem, std::size_t ranks, std::minstd_rand* random) {
  const std::size_t element = element_bytes(problem->type);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Bytes mine(problem->published() * element);
    for (std::byte& one : mine) one = static_cast<std::byte>((*random)() % 251);
    problem->given.push_back(std::move(mine));
  }
  const Bytes all = problem->reduces() ? combined_all(*problem) : Bytes{};
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Bytes right;
    const auto add = [&](const Bytes& from, std::size_t first, std::size_t count) {
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>(first * element);
      right.insert(right.end(), begin, begin + static_cast<std::ptrdiff_t>(count * element));
    };
    if (problem->kind == kAllreduce) right = all;
    if (problem->kind == kReduceScatter) add(all, problem->before(rank), problem->counts[rank]);
    if (problem->kind == kBroadcast)
      right = problem->given[static_cast<std::size_t>(problem->root)];
    for (const Bytes& one : problem->given) {
      if (problem->kind == kAllgather) add(one, 0, problem->published());
      if (problem->kind == kAlltoall) add(one, problem->before(rank), problem->counts[rank]);
    }
    problem->right.push_back(std::move(right));
  }
}

Problem random_problem(std::minstd_rand* random, std::size_t ranks) {
  static constexpr weft_gpu_type kTypes[] = {WEFT_GPU_UINT8, WEFT_GPU_INT16, WEFT_GPU_INT32,
                                             WEFT_GPU_INT64};
  const auto below = [random](std::size_t bound) { return (*random)() % bound; };
  Problem problem;
  problem.kind = static_cast<Kind>(below(kKinds));
  if (problem.kind == kBroadcast) problem.root = static_cast<int>(below(ranks));
  if (problem.reduces()) problem.type = kTypes[below(4)];
  problem.op = static_cast<weft_gpu_op>(below(WEFT_GPU_BXOR + 1));
  // Lengths are close to that of a slot or of a slice, short, or long.
  const std::size_t around[] = {1 + below(40), 8192 - 20 + below(40), kSlotBytes - 20 + below(40),
                                1 + below(1 << 20)};
  const std::size_t all = std::max<std::size_t>(1, around[below(4)] / element_bytes(problem.type));
  const bool has_parts = problem.kind == kReduceScatter || problem.kind == kAlltoall;
  problem.counts.assign(has_parts ? ranks : 1, has_parts ? 1 + all / ranks : all);
  if (problem.kind == kReduceScatter) {
    for (std::size_t& one : problem.counts) one = below(3) == 0 ? 0 : one - below(one);
    problem.counts[below(ranks)] += 1;
  }
  fill(&problem, ranks, random);
  return problem;
}

OneKernelCall call_of(const Problem& problem, std::size_t rank) {
  using What = OneKernelCall::What;
  OneKernelCall call;
  call.what = problem.reduces() ? What::reduce : What::gather;
  if (problem.kind == kBroadcast) call.what = What::broadcast;
  call.type = problem.type, call.op = problem.op, call.root = problem.root;
  call.published = call.count = problem.published();
  call.takes_parts = problem.counts.size() > 1;
  if (call.takes_parts) call.count = problem.counts[rank], call.from = problem.before(rank);
  return call;
}

// Running: the operations of all ranks for a problem, with their buffers.
class Running {
 public:
  Running(Ranks* ranks, int spot, const Problem& problem, std::optional<Form> form = {},
          bool in_place = false)
      : ranks_(*ranks), problem_(problem) {
    const OneKernelCall first = call_of(problem, 0);
    const std::size_t slot_bytes = (first.bytes() + kPackBytes - 1) / kPackBytes * kPackBytes;
    std::vector<std::shared_ptr<SharedMemory>> slots(ranks->size());
    if (first.bytes() > kSlotBytes) slots = shared_slots(ranks->group(), slot_bytes);
    for (std::size_t rank = 0; rank < ranks->size(); ++rank) {
      ByKernel by_kernel{ranks->group().peers[rank], spot, call_of(problem, rank)};
      from_.push_back(std::make_unique<Buffer>(WEFT_GPU_UINT8, problem.given[rank], true));
      to_.push_back(std::make_unique<Buffer>(
          WEFT_GPU_UINT8, Bytes(std::max<std::size_t>(1, problem.right[rank].size())), true));
      const bool is_silent = problem.root >= 0 && problem.root != static_cast<int>(rank);
      if (!is_silent) by_kernel.call.in = reinterpret_cast<void*>(from_[rank]->address());
      by_kernel.call.out = reinterpret_cast<void*>((in_place ? from_ : to_)[rank]->address());
      by_kernel.form = form ? *form : form_of(first);
      by_kernel.slots = slots[rank];
      by_kernel.slot_bytes = slot_bytes;
      operations_.push_back(add_by_kernel(&ranks->runtime(rank), std::move(by_kernel)));
    }
  }

  Operation& operation(std::size_t rank) { return *operations_[rank]; }
  Buffer& from(std::size_t rank) { return *from_[rank]; }
  void start(std::size_t rank) { ASSERT_TRUE(operations_[rank]->start(ranks_.stream(rank))); }
  void wait(std::size_t rank) { ASSERT_TRUE(operations_[rank]->wait(ranks_.stream(rank))); }
  void run(std::size_t rank) { ASSERT_TRUE(operations_[rank]->run(ranks_.stream(rank))); }

  // Waits for all ranks' streams, checks the results, and clears them for the next run.
  void expect_right(const std::string& how) {
    ranks_.synchronise();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const Bytes& right = problem_.right[rank];
      if (static_cast<int>(rank) == problem_.root || right.empty()) continue;
      ASSERT_TRUE(to_[rank]->bytes() == right)
          << how << ", rank " << rank << ", kind " << problem_.kind << ", type " << problem_.type
          << ", op " << problem_.op << ", " << problem_.given[0].size() << " bytes";
      ASSERT_EQ((*driver())->fill(to_[rank]->address(), 0, right.size(), ranks_.stream(rank)),
                kSuccess);
    }
    ranks_.synchronise();
  }
  void release() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_.runtime(rank).release(operations_[rank]);
    }
  }

 private:
  Ranks& ranks_;
  const Problem& problem_;
  std::vector<std::unique_ptr<Buffer>> from_, to_;
  std::vector<Operation*> operations_;
};

void* captured(Running* running, Stream stream, std::size_t rank) {
  void *graph = nullptr, *exec = nullptr;
  EXPECT_EQ(cuStreamBeginCapture_v2(stream, 0), kSuccess);
  running->run(rank);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), kSuccess);
  EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), kSuccess);
  cuGraphDestroy(graph);
  return exec;
}

Problem sum_of(std::size_t bytes, std::size_t ranks) {
  std::minstd_rand random(1);
  Problem problem;
  problem.type = WEFT_GPU_INT64;
  problem.counts = {bytes / sizeof(std::int64_t)};
  fill(&problem, ranks, &random);
  return problem;
}

// ---- All kinds and lengths -------------------------------------------------------

class LongOneKernel : public ::testing::TestWithParam<int> {
 protected:
  Ranks ranks_{GetParam()};
};

// Each call runs three times: at once, as start and wait, and in a graph. Each run replaces the
// results of the one before.
TEST_P(LongOneKernel, RandomCallsOfManyLengths) {
  std::minstd_rand random(static_cast<unsigned>(GetParam()));
  for (int i = 0; i < 30; ++i) {
    const Problem problem = random_problem(&random, ranks_.size());
    std::optional<Form> form;
    if (random() % 2 == 0) form = Form{1 + static_cast<int>(random() % kMostSlices), true};
    standin_run_last_block_first(random() % 2 == 0);
    Running running(&ranks_, common_spot(ranks_.group()), problem, form);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) running.run(rank);
    running.expect_right("at once");
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      running.start(rank);
      running.wait(rank);
    }
    running.expect_right("in halves");
    std::vector<void*> graphs;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      graphs.push_back(captured(&running, ranks_.stream(rank), rank));
    }
    for (int launch = 0; launch < 3; ++launch) {
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        ASSERT_EQ(cuGraphLaunch(graphs[rank], ranks_.stream(rank)), kSuccess);
      }
    }
    running.expect_right("in a graph");
    for (void* one : graphs) cuGraphExecDestroy(one);
    running.release();
  }
}

// The result replaces the beginning of what the rank gives.
TEST_P(LongOneKernel, PartsAreReducedInPlace) {
  std::minstd_rand random(7);
  for (const std::size_t count : {3, 20000}) {
    Problem problem;
    problem.kind = kReduceScatter;
    problem.type = WEFT_GPU_INT32;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) problem.counts.push_back(count + rank);
    fill(&problem, ranks_.size(), &random);
    Running running(&ranks_, common_spot(ranks_.group()), problem, {}, true);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) running.run(rank);
    ranks_.synchronise();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      Bytes found = running.from(rank).bytes();
      found.resize(problem.right[rank].size());
      EXPECT_TRUE(found == problem.right[rank]) << rank;
    }
    running.release();
  }
}

// Operations of one block and of many use one spot in turn, an odd number of times.
TEST_P(LongOneKernel, SlicesKeepCountForOperationsWithMore) {
  for (const auto& [bytes, times] : {std::pair<std::size_t, int>{200 << 10, 2},
                                     {8, 1},
                                     {100 << 10, 3},
                                     {8, 1},
                                     {700 << 10, 2}}) {
    const Problem problem = sum_of(bytes, ranks_.size());
    ASSERT_EQ(common_spot(ranks_.group()), 0);
    Running running(&ranks_, 0, problem);
    for (int i = 0; i < times; ++i) {
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) running.start(rank);
      ranks_.synchronise();
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) running.wait(rank);
      running.expect_right(std::to_string(bytes) + " bytes");
    }
    running.release();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) ranks_.runtime(rank).collect();
  }
}

// ---- No circle of waiting ranks --------------------------------------------------

// All ranks have started all collectives. Each waits for them in an order of its own.
TEST_P(LongOneKernel, RanksWaitForLongOnesInAnyOrder) {
  constexpr std::size_t kAtOnce = 4;
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < kAtOnce; ++i) {
    problems.push_back(sum_of((300 << 10) * (i + 1), ranks_.size()));
  }
  std::vector<std::unique_ptr<Running>> all;
  for (std::size_t i = 0; i < kAtOnce; ++i) {
    all.push_back(std::make_unique<Running>(&ranks_, static_cast<int>(i), problems[i]));
  }
  for (int round = 0; round < 5; ++round) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (std::size_t i = 0; i < kAtOnce; ++i) all[(i + 2 * rank) % kAtOnce]->start(rank);
      for (std::size_t i = 0; i < kAtOnce; ++i) all[(i + rank) % kAtOnce]->wait(rank);
    }
    for (auto& one : all) one->expect_right("in any order");
  }
  for (auto& one : all) one->release();
}

// A rank that has started a collective owes nothing to the others, also if it never waits.
TEST_P(LongOneKernel, ARankThatHasStartedMayEnd) {
  const Problem problem = sum_of(700 << 10, ranks_.size());
  Running running(&ranks_, 0, problem);
  const std::size_t last = ranks_.size() - 1;
  running.start(last);
  for (std::size_t rank = 0; rank < last; ++rank) running.run(rank);
  ranks_.synchronise();
  ranks_.runtime(last).agent().stop();
  for (std::size_t rank = 0; rank < last; ++rank) {
    // This call may come before the rank is told, but then its kernels are.
    (void)running.operation(rank).run(ranks_.stream(rank));
    ASSERT_EQ(cuStreamSynchronize(ranks_.stream(rank)), kSuccess);
    EXPECT_FALSE(running.operation(rank).run(ranks_.stream(rank)));
  }
  running.release();
}

// The first, second or third kernel of one rank cannot be launched.
TEST_P(LongOneKernel, ARankThatCannotLaunchLetsTheOthersGoOn) {
  const Problem problem = sum_of(700 << 10, ranks_.size());
  for (int nth = 1; nth <= 3; ++nth) {
    Running running(&ranks_, nth, problem);
    standin_fail("cuLaunchKernel", nth, standin::kOutOfMemory);
    EXPECT_FALSE(running.operation(0).run(ranks_.stream(0)));
    for (std::size_t rank = 1; rank < ranks_.size(); ++rank) running.run(rank);
    ranks_.synchronise();
    for (std::size_t rank = 1; rank < ranks_.size(); ++rank) {
      // This call may come before the rank is told, but then its kernels are.
      (void)running.operation(rank).run(ranks_.stream(rank));
    }
    ranks_.synchronise();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      EXPECT_FALSE(running.operation(rank).run(ranks_.stream(rank)));
    }
    running.release();
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, LongOneKernel, ::testing::Range(2, 6));

// ---- Any number of ranks, and their room on the device ---------------------------

TEST(ManyRanks, MeetInOneKernelAndInThree) {
  Ranks ranks(20);
  std::minstd_rand random(3);
  for (int i = 0; i < 6; ++i) {
    const Problem problem = random_problem(&random, ranks.size());
    Running running(&ranks, common_spot(ranks.group()), problem);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) running.run(rank);
    running.expect_right("on many ranks");
    running.release();
  }
}

TEST(Forms, LeaveRoomForAllBlocksThatWait) {
  EXPECT_EQ(form_by_rule(8, false, 0), std::nullopt);
  EXPECT_EQ(form_by_rule(8, false, 1), (Form{1, false}));
  EXPECT_EQ(form_by_rule(8, true, 1), (Form{1, false}));
  EXPECT_EQ(form_by_rule(kSlotBytes, false, 16), (Form{16, false}));
  EXPECT_EQ(form_by_rule(kSlotBytes, false, 15), (Form{32, true}));
  EXPECT_EQ(form_by_rule(kSlotBytes, true, 16), (Form{32, true}));
  EXPECT_EQ(form_by_rule(kSlotBytes + 1, false, 16), (Form{33, true}));
  EXPECT_EQ(form_by_rule(1 << 30, false, 16), (Form{kMostSlices, true}));
}

TEST(Forms, WorthMeasuringBeginWithTheRules) {
  using All = std::vector<Form>;
  EXPECT_EQ(forms_to_try(8, false, 0), All{});
  EXPECT_EQ(forms_to_try(8, false, 1), (All{{1, false}, {1, true}}));
  EXPECT_EQ(forms_to_try(kSlotBytes, false, 16), (All{{16, false}, {4, false}, {32, true}}));
  EXPECT_EQ(forms_to_try(kSlotBytes, false, 15), (All{{32, true}, {4, false}}));
  EXPECT_EQ(forms_to_try(20'000, true, 16), (All{{3, true}, {1, false}}));
  EXPECT_EQ(forms_to_try(kSlotBytes + 1, false, 16), (All{{33, true}}));
}

TEST(Forms, TakeTheirRoomUntilTheyAreFreed) {
  use_device();
  constexpr int kBlocks = 100;
  standin_set_attribute(kDeviceThreadsOfProcessor, 2 * kBlocks * kOneKernelThreads);
  Ranks ranks(4);
  const Problem short_one = sum_of(32 << 10, ranks.size()), long_one = sum_of(1 << 20, 4);
  const auto room = [&] { return ranks.group().peers[1]->room(); };
  EXPECT_EQ(room(), kBlocks / 4);
  {
    Running first(&ranks, 0, short_one), second(&ranks, 1, long_one);
    EXPECT_EQ(room(), kBlocks / 4 - 4 - 1);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) first.run(rank);
    first.expect_right("beside another");
    first.release();
    second.release();
  }
  ranks.runtime(1).collect();
  EXPECT_EQ(room(), kBlocks / 4);
}

// ---- Memory for long data, graphs and streams -------------------------------------

TEST(LongMemory, IsUsedAgainByOperationsOfAboutTheSameLength) {
  Ranks ranks(3);
  int before = 0;
  for (int i = 0; i < 8; ++i) {
    const Problem problem = sum_of((1 << 20) - 8 * static_cast<std::size_t>(i), ranks.size());
    {
      Running running(&ranks, common_spot(ranks.group()), problem);
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) running.run(rank);
      running.expect_right("once more");
      running.release();
    }
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) ranks.runtime(rank).collect();
    if (i == 2) before = standin_allocated();
  }
  EXPECT_EQ(standin_allocated(), before);
}

TEST(LongMemory, ThatLacksIsSaid) {
  Ranks ranks(2);
  for (const char* call : {"cuMemAlloc", "cuIpcGetMemHandle"}) {
    LongOffer offer;
    standin_fail(call, 1, standin::kOutOfMemory);
    const auto slots = ranks.group().peers[0]->create_slots(3 << 20, &offer);
    ASSERT_FALSE(slots);
    EXPECT_EQ(slots.error().message, std::string(call) + ": CUDA_ERROR_OUT_OF_MEMORY");
    EXPECT_FALSE(offer.good);
  }
}

TEST(Graphs, RunOnAfterTheirCommunicatorIsGone) {
  Ranks ranks(3);
  for (const std::size_t bytes : {64, 700 << 10}) {
    const Problem problem = sum_of(bytes, ranks.size());
    Running running(&ranks, common_spot(ranks.group()), problem);
    std::vector<void*> graphs;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      graphs.push_back(captured(&running, ranks.stream(rank), rank));
    }
    running.release();
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) ranks.runtime(rank).collect();
    if (bytes > kSlotBytes) ranks.group() = {};
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      ASSERT_EQ(cuGraphLaunch(graphs[rank], ranks.stream(rank)), kSuccess);
    }
    running.expect_right("after the end of the communicator");
    for (void* one : graphs) cuGraphExecDestroy(one);
  }
}

TEST(Streams, MayBeDestroyedUnderWay) {
  Ranks ranks(3);
  const Problem problem = sum_of(700 << 10, ranks.size());
  Running running(&ranks, 0, problem);
  running.start(0);
  cuStreamDestroy_v2(ranks.stream(0));
  ASSERT_EQ(cuStreamCreate(&ranks.stream(0), 1), kSuccess);
  running.wait(0);
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) running.run(rank);
  running.expect_right("waited for in another stream");
  running.release();
}

}  // namespace
}  // namespace weft::gpu
