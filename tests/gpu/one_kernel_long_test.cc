// Collectives in one kernel that are so long that they need several rounds through the two slots.
// They have 2 to 5 ranks in one process, run on the stand-in for CUDA's driver, and are compared
// with a loop on the processor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "group.h"

namespace weft::gpu {
namespace {

using What = OneKernelCall::What;

class LongOneKernel : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    use_device();
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      runtimes_.push_back(std::make_unique<Runtime>(**driver()));
      pointers_.push_back(runtimes_.back().get());
      streams_.push_back(nullptr);
      ASSERT_EQ(cuStreamCreate(&streams_.back(), 1), kSuccess);
    }
    group_ = meet_all(pointers_, {});
    ASSERT_EQ(group_.why_not, "");
  }
  void TearDown() override {
    for (auto& one : runtimes_) one->agent().stop();
    standin_forget_errors();
    standin_run_last_block_first(false);
    for (Stream one : streams_) {
      EXPECT_EQ(cuStreamSynchronize(one), kSuccess);
      cuStreamDestroy_v2(one);
    }
    group_ = {};
  }

  static std::size_t ranks() { return static_cast<std::size_t>(GetParam()); }

  Operation* make(std::size_t rank, int spot, const OneKernelCall& call, const Buffer& from,
                  const Buffer& to) {
    ByKernel by_kernel{group_.peers[rank], spot, call};
    by_kernel.call.in = reinterpret_cast<const void*>(from.address());
    by_kernel.call.out = reinterpret_cast<void*>(to.address());
    return add_by_kernel(pointers_[rank], std::move(by_kernel));
  }
  void synchronise() {
    for (Stream one : streams_) ASSERT_EQ(cuStreamSynchronize(one), kSuccess);
  }

  std::vector<std::unique_ptr<Runtime>> runtimes_;
  std::vector<Runtime*> pointers_;
  std::vector<Stream> streams_;
  Group group_;
};

// Returns the result that all ranks must get; in a broadcast, all ranks but the root.
Bytes outcome_of(const OneKernelCall& call, const std::vector<Bytes>& given) {
  const std::size_t bytes = call.count * element_bytes(call.type);
  Bytes right;
  if (call.what == What::broadcast) return given[static_cast<std::size_t>(call.root)];
  if (call.what == What::allgather) {
    for (const Bytes& one : given) right.insert(right.end(), one.begin(), one.end());
    return right;
  }
  right = given.front();
  for (std::size_t rank = 1; rank < given.size(); ++rank) {
    for (std::size_t at = 0; at < bytes; at += element_bytes(call.type)) {
      const auto combine = [&]<class T>(T) {
        T all, one;
        std::memcpy(&all, right.data() + at, sizeof all);
        std::memcpy(&one, given[rank].data() + at, sizeof one);
        all = combined(call.op, all, one);
        std::memcpy(right.data() + at, &all, sizeof all);
      };
      if (call.type == WEFT_GPU_UINT8) combine(std::uint8_t{});
      if (call.type == WEFT_GPU_INT16) combine(std::int16_t{});
      if (call.type == WEFT_GPU_INT32) combine(std::int32_t{});
      if (call.type == WEFT_GPU_INT64) combine(std::int64_t{});
    }
  }
  return right;
}

OneKernelCall random_call(std::minstd_rand* random, std::size_t ranks) {
  static constexpr weft_gpu_type kTypes[] = {WEFT_GPU_UINT8, WEFT_GPU_INT16, WEFT_GPU_INT32,
                                             WEFT_GPU_INT64};
  static constexpr std::size_t kAround[] = {1, 2, 3, 5};
  const auto below = [random](std::size_t bound) { return (*random)() % bound; };
  OneKernelCall call;
  call.what = static_cast<What>(below(3));
  call.root = call.what == What::broadcast ? static_cast<int>(below(ranks)) : -1;
  call.type = call.what == What::allreduce ? kTypes[below(4)] : WEFT_GPU_UINT8;
  call.op = static_cast<weft_gpu_op>(below(WEFT_GPU_BXOR + 1));
  // Half of the lengths are close to the border of a slot, the others are random.
  const std::size_t slots = kAround[below(4)] * kSlotBytes;
  const std::size_t bytes = below(2) == 0 ? slots - 20 + below(40) : 1 + below(slots);
  call.count = std::max<std::size_t>(1, bytes / element_bytes(call.type));
  return call;
}

// Each call runs three times: at once, as start and wait, and in a graph. Each run replaces the
// results of the one before.
TEST_P(LongOneKernel, RandomCallsOfManyLengths) {
  std::minstd_rand random(static_cast<unsigned>(GetParam()));
  for (int i = 0; i < 24; ++i) {
    const OneKernelCall call = random_call(&random, ranks());
    standin_run_last_block_first(random() % 2 == 0);
    const std::size_t bytes = call.count * element_bytes(call.type);
    const std::size_t blocks = call.what == What::allgather ? ranks() : 1;
    const int spot = common_spot(group_);
    std::vector<Bytes> given(ranks());
    std::vector<std::unique_ptr<Buffer>> from, to;
    std::vector<Operation*> operations;
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      for (std::size_t at = 0; at < bytes; ++at) {
        given[rank].push_back(static_cast<std::byte>(random() % 251));
      }
      from.push_back(std::make_unique<Buffer>(WEFT_GPU_UINT8, given[rank], true));
      to.push_back(std::make_unique<Buffer>(WEFT_GPU_UINT8, Bytes(bytes * blocks), true));
      operations.push_back(make(rank, spot, call, *from[rank], *to[rank]));
    }
    const Bytes right = outcome_of(call, given);
    const auto expect_right = [&](const char* how) {
      synchronise();
      for (std::size_t rank = 0; rank < ranks(); ++rank) {
        if (static_cast<int>(rank) == call.root) continue;
        ASSERT_EQ(to[rank]->bytes(), right)
            << how << ", call " << i << ": " << bytes << " bytes, kind "
            << static_cast<int>(call.what) << ", type " << call.type << ", op " << call.op;
        ASSERT_EQ((*driver())->fill(to[rank]->address(), 0, right.size(), streams_[rank]),
                  kSuccess);
      }
      synchronise();
    };
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      ASSERT_TRUE(operations[rank]->run(streams_[rank]));
    }
    expect_right("at once");
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      ASSERT_TRUE(operations[rank]->start(streams_[rank]));
      ASSERT_TRUE(operations[rank]->wait(streams_[rank]));
    }
    expect_right("in halves");
    std::vector<void*> graphs;
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      void *graph = nullptr, *exec = nullptr;
      ASSERT_EQ(cuStreamBeginCapture_v2(streams_[rank], 0), kSuccess);
      ASSERT_TRUE(operations[rank]->run(streams_[rank]));
      ASSERT_EQ(cuStreamEndCapture(streams_[rank], &graph), kSuccess);
      ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), kSuccess);
      cuGraphDestroy(graph);
      graphs.push_back(exec);
    }
    for (int launch = 0; launch < 3; ++launch) {
      for (std::size_t rank = 0; rank < ranks(); ++rank) {
        ASSERT_EQ(cuGraphLaunch(graphs[rank], streams_[rank]), kSuccess);
      }
    }
    expect_right("in a graph");
    for (void* one : graphs) cuGraphExecDestroy(one);
    for (std::size_t rank = 0; rank < ranks(); ++rank) pointers_[rank]->release(operations[rank]);
  }
}

// Blocks of a kernel may be ahead of each other by some rounds. The first block has used this spot
// more often than the others, since collectives of one block ran there before, an odd number of
// times.
TEST_P(LongOneKernel, BlocksInWhateverOrderKeepToTheirPlaces) {
  standin_run_last_block_first(true);
  const auto sum_of = [&](int spot, std::size_t bytes, int times) {
    OneKernelCall call;
    call.count = bytes / sizeof(Number);
    call.type = WEFT_GPU_INT64;
    std::vector<std::unique_ptr<Buffer>> from, to;
    std::vector<Operation*> operations;
    Numbers right(call.count);
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      Numbers mine(call.count);
      for (std::size_t i = 0; i < mine.size(); ++i) {
        mine[i] = static_cast<Number>(i * (rank + 1));
        right[i] += mine[i];
      }
      from.push_back(std::make_unique<Buffer>(mine, true));
      to.push_back(std::make_unique<Buffer>(Numbers(call.count), true));
      operations.push_back(make(rank, spot, call, *from[rank], *to[rank]));
    }
    for (int i = 0; i < times; ++i) {
      for (std::size_t rank = 0; rank < ranks(); ++rank) {
        ASSERT_TRUE(operations[rank]->start(streams_[rank]));
      }
      synchronise();  // all blocks of all ranks have published their first round
      for (std::size_t rank = 0; rank < ranks(); ++rank) {
        ASSERT_TRUE(operations[rank]->wait(streams_[rank]));
      }
      synchronise();
      for (std::size_t rank = 0; rank < ranks(); ++rank) {
        ASSERT_EQ(to[rank]->content(), right) << bytes << " bytes, rank " << rank;
      }
    }
    for (std::size_t rank = 0; rank < ranks(); ++rank) pointers_[rank]->release(operations[rank]);
    for (Runtime* one : pointers_) one->collect();
  };
  sum_of(0, 600 << 10, 2);
  sum_of(0, 8, 1);
  sum_of(0, 300 << 10, 2);
}

// The last rank publishes its first round and no other one. The other ranks can complete only this
// round. The next start returns an error and does not wait.
TEST_P(LongOneKernel, ARankThatEndsInTheMiddleLetsTheOthersGoOn) {
  OneKernelCall call;
  call.count = 3 * kSlotBytes / sizeof(Number);
  call.type = WEFT_GPU_INT64;
  std::vector<std::unique_ptr<Buffer>> all;
  std::vector<Operation*> operations;
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    all.push_back(std::make_unique<Buffer>(Numbers(call.count, 1), true));
    operations.push_back(make(rank, 0, call, *all[rank], *all[rank]));
  }
  const std::size_t last = ranks() - 1;
  ASSERT_TRUE(operations[last]->start(streams_[last]));
  ASSERT_EQ(cuStreamSynchronize(streams_[last]), kSuccess);
  for (std::size_t rank = 0; rank < last; ++rank) {
    ASSERT_TRUE(operations[rank]->run(streams_[rank]));
  }
  // A rank must have published its first round before the last rank gives up; otherwise it would
  // give up, too.
  const auto& spot = *static_cast<Spot*>(standin_data(group_.peers[0]->sharing(0, {}).spots[0]));
  for (std::size_t rank = 1; rank < ranks(); ++rank)
    while (weft_device_load(&spot.flags[rank][0]) == 0) std::this_thread::yield();
  pointers_[last]->agent().stop();
  synchronise();
  const Numbers first = all[0]->content();
  EXPECT_EQ(first.front(), GetParam());
  EXPECT_EQ(first.back(), 1);
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    EXPECT_FALSE(operations[rank]->run(streams_[rank]));
    pointers_[rank]->release(operations[rank]);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, LongOneKernel, ::testing::Range(2, 6));

}  // namespace
}  // namespace weft::gpu
