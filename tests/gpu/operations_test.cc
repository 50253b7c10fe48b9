// Collectives in streams, one at a time: chunks, order, graphs, and how long they keep their
// resources.
#include "operations.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace weft::gpu {
namespace {

TEST_F(Operations, ArrivesInChunksInTheStream) {
  Operation* const operation = made(7).operation;
  enqueue_affine(from_, 2, 0, stream_);
  ASSERT_TRUE(operation->start(stream_));
  enqueue_affine(from_, 0, 0, stream_);  // the input has been copied before, so it may change
  ASSERT_TRUE(operation->wait(stream_));
  enqueue_affine(to_, 1, 1, stream_);
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
  Numbers right(100);
  for (std::size_t i = 0; i < 100; ++i) right[i] = 2 * (static_cast<Number>(i) + 1) + 1;
  EXPECT_EQ(to_.content(), right);
  runtime_.release(operation);
}

// Each collective needs only two calls of the driver: for the kernel that announces the start, and
// for the one that waits.
TEST_F(Operations, ShortDataAreCopiedByTheKernelsThatTellAndWait) {
  Runtime runtime{**driver()};
  for (const bool short_enough : {true, false}) {
    const std::size_t count = short_enough ? 100 : (32 << 10) / sizeof(Number) + 1;
    Buffer from(counting(count), true), to(Numbers(count), true);
    const Made one =
        make_collective(&runtime, &library_, 0, next_number_++, What::sum, 0, from, to, 1, 1, {});
    standin_fail("cuMemcpyAsync", 1, standin::kOutOfMemory);
    EXPECT_EQ(static_cast<bool>(one.operation->run(stream_)), short_enough);
    EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
    standin_forget_errors();
    EXPECT_EQ(to.content(), short_enough ? counting(count) : Numbers(count));
    runtime.release(one.operation);
  }
  runtime.agent().stop();
}

TEST_F(Operations, StartsNoOrderedOneBeforeTheOneEnqueuedBeforeIt) {
  Stream late = nullptr;
  ASSERT_EQ(cuStreamCreate(&late, 1), kSuccess);
  const auto order = std::make_shared<Order>();
  Operation *const first = made(2, order).operation, *const second = made(1, order).operation;
  ASSERT_TRUE(second->start(stream_));
  ASSERT_TRUE(second->wait(stream_));
  void* ended = nullptr;
  ASSERT_EQ(cuEventCreate(&ended, 2), kSuccess);
  ASSERT_EQ(cuEventRecord(ended, stream_), kSuccess);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ((*driver())->query(ended), kNotReady);
  ASSERT_TRUE(first->start(late));
  EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
  EXPECT_EQ((*driver())->query(ended), kSuccess);
  EXPECT_EQ(cuStreamSynchronize(late), kSuccess);
  runtime_.release(first);
  runtime_.release(second);
  cuEventDestroy_v2(ended);
  cuStreamDestroy_v2(late);
}

TEST_F(Operations, AGraphIsLaunchedTenThousandTimes) {
  Operation* const operation = made(2).operation;
  void* const exec = captured(operation);
  constexpr int kLaunches = 10'000;
  for (int i = 0; i < kLaunches; ++i) ASSERT_EQ(cuGraphLaunch(exec, stream_), kSuccess);
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
  Numbers right = counting(100);
  for (Number& one : right) one += kLaunches;
  EXPECT_EQ(to_.content(), right);
  runtime_.release(operation);
  cuGraphExecDestroy(exec);
}

TEST_F(Operations, AGraphKeepsWhatTheUserHasGivenBack) {
  Operation* const operation = made(3).operation;
  void* const exec = captured(operation);
  runtime_.release(operation);
  for (int i = 0; i < 5; ++i) {
    Operation* const another = made(3).operation;
    ASSERT_EQ(cuGraphLaunch(exec, stream_), kSuccess);
    ASSERT_TRUE(another->start(stream_));
    ASSERT_TRUE(another->wait(stream_));
    runtime_.release(another);
  }
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
  Numbers right = counting(100);
  for (Number& one : right) one += 5;
  EXPECT_EQ(to_.content(), right);
  cuGraphExecDestroy(exec);
}

// A collective that completes at once. The use count of the token tells how many such objects
// exist.
struct AtOnce : Collective {
  explicit AtOnce(std::shared_ptr<int> one) : token(std::move(one)) {}
  Result<bool> start(std::size_t) override { return true; }
  Result<bool> test(std::size_t) override { return true; }
  const std::shared_ptr<int> token;
};

// cudaStreamPerThread is a different stream in each thread.
TEST_F(Operations, IsKeptUntilTheStreamsOfAllThreadsHavePassed) {
  static std::atomic<bool> may_continue{false};
  standin_add_kernel("test_waits", 0, nullptr, [](void* const*) {
    while (!may_continue) std::this_thread::yield();
  });
  void* kernel = nullptr;
  ASSERT_EQ(cuModuleGetFunction(&kernel, nullptr, "test_waits"), kSuccess);
  const auto token = std::make_shared<int>();
  const auto operation = runtime_.add(*runtime_.context(), std::vector<Chunk>(1),
                                      std::make_unique<AtOnce>(token), {}, {});
  ASSERT_TRUE(operation);
  const auto collected = [&](int milliseconds) {
    for (int i = 0; i < milliseconds && token.use_count() > 1; ++i) {
      runtime_.collect();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return token.use_count() == 1;
  };
  ASSERT_EQ(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, kStreamPerThread, nullptr, nullptr),
            kSuccess);
  EXPECT_TRUE((*operation)->start(kStreamPerThread));
  std::thread([&] {
    use_device();
    EXPECT_TRUE((*operation)->wait(kStreamPerThread));
    EXPECT_EQ(cuStreamSynchronize(kStreamPerThread), kSuccess);
  }).join();
  runtime_.release(*operation);
  EXPECT_FALSE(collected(50));
  may_continue = true;
  EXPECT_EQ(cuStreamSynchronize(kStreamPerThread), kSuccess);
  EXPECT_TRUE(collected(1000));
}

TEST_F(Operations, TheDriverCopiesMemoryOfAnotherDevice) {
  Runtime runtime(**driver());  // its kernels copy short data
  standin_move(reinterpret_cast<void*>(from_.address()), 1);
  Operation* const operation =
      make_collective(&runtime, &library_, 0, 0, What::sum, 0, from_, to_, 1, 1, nullptr).operation;
  standin_fail("cuMemcpyAsync", 1, standin::kOutOfMemory);
  EXPECT_EQ(message(operation->start(stream_)), "cuMemcpyAsync: CUDA_ERROR_OUT_OF_MEMORY");
  runtime.release(operation);
}

TEST_F(Operations, TheAgentsEndLeavesTheCallersThreadAlone) {
  struct Seen : Collective {
    explicit Seen(Context* one) : context(one) {}
    Result<bool> start(std::size_t) override {
      context->make_current();
      started = std::this_thread::get_id();
      return true;
    }
    Result<bool> test(std::size_t) override { return true; }
    bool has_released_buffers() override {
      context->make_current();
      return true;
    }
    Context* const context;
    std::atomic<std::thread::id> started{};
  };
  Stream late = nullptr;
  ASSERT_EQ(cuStreamCreate(&late, 1), kSuccess);
  standin_add_kernel("test_late", 0, nullptr, [](void* const*) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  });
  void* kernel = nullptr;
  ASSERT_EQ(cuModuleGetFunction(&kernel, nullptr, "test_late"), kSuccess);
  ASSERT_EQ(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, late, nullptr, nullptr), kSuccess);
  Runtime runtime(**driver());
  auto collective = std::make_unique<Seen>(*runtime.context());
  const Seen& seen = *collective;
  const auto operation =
      runtime.add(*runtime.context(), std::vector<Chunk>(1), std::move(collective), {}, {});
  ASSERT_TRUE(operation);
  EXPECT_TRUE((*operation)->start(late));
  EXPECT_EQ(runtime.agent().stop(std::chrono::seconds(10)), 0);
  EXPECT_NE(seen.started.load(), std::thread::id());
  EXPECT_NE(seen.started.load(), std::this_thread::get_id());
  int mode = 0;
  EXPECT_EQ((*driver())->exchange_capture_mode(&mode), kSuccess);
  EXPECT_EQ(mode, 0);  // the capture mode of the thread is unchanged
  runtime.release(*operation);
  cuStreamDestroy_v2(late);
}

TEST_F(Operations, UsesMemoryAgain) {
  for (int i = 0; i < 10; ++i) {
    Operation* const operation = made(2, std::make_shared<Order>()).operation;
    ASSERT_TRUE(operation->start(stream_));
    ASSERT_TRUE(operation->wait(stream_));
    runtime_.release(operation);
  }
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
  const int before = standin_allocated();
  for (int i = 0; i < 1000; ++i) {
    const bool in_graph = i % 3 == 0;
    Operation* const operation =
        in_graph ? made(2).operation : made(2, std::make_shared<Order>()).operation;
    if (in_graph) {
      void* const exec = captured(operation);
      ASSERT_EQ(cuGraphLaunch(exec, stream_), kSuccess);
      cuGraphExecDestroy(exec);
    } else {
      ASSERT_TRUE(operation->start(stream_));
      ASSERT_TRUE(operation->wait(stream_));
    }
    runtime_.release(operation);
    ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
  }
  // The agent may not yet have freed the last operations.
  EXPECT_LE(standin_allocated(), before + 20);
}

// The operation is waited for in a stream that cannot continue, and then in another stream.
TEST_F(Operations, MemoryIsUsedAgainWhenAllStreamsHavePassed) {
  Stream late = nullptr;
  ASSERT_EQ(cuStreamCreate(&late, 1), kSuccess);
  const auto order = std::make_shared<Order>();
  Operation *const gate = made(1, order).operation, *const behind = made(1, order).operation;
  Operation* const operation = made().operation;
  ASSERT_TRUE(behind->start(late));
  ASSERT_TRUE(behind->wait(late));
  ASSERT_TRUE(operation->start(stream_));
  ASSERT_TRUE(operation->wait(late));
  ASSERT_TRUE(operation->wait(stream_));
  EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
  runtime_.release(operation);
  runtime_.collect();
  // Time for the agent to drop the operation.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  runtime_.collect();
  const Buffer others(Numbers(100, 7), true), result(Numbers(100), true);
  Operation* const other = make_collective(&runtime_, &library_, 0, next_number_++, What::sum, 0,
                                           others, result, 1, 1, nullptr)
                               .operation;
  ASSERT_TRUE(other->start(stream_));
  ASSERT_TRUE(other->wait(stream_));
  EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
  ASSERT_TRUE(gate->start(stream_));
  EXPECT_EQ(cuStreamSynchronize(late), kSuccess);
  EXPECT_EQ(to_.content(), counting(100));
  for (Operation* one : {gate, behind, other}) runtime_.release(one);
  cuStreamDestroy_v2(late);
}

TEST_F(Operations, TheAgentIsAttentiveForLongerWhileThereAreGraphs) {
  using std::chrono::microseconds;
  EXPECT_EQ(Agent::nap(microseconds(900), false), microseconds(0));
  EXPECT_EQ(Agent::nap(microseconds(1000), false), microseconds(125));
  EXPECT_EQ(Agent::nap(microseconds(900'000), false), microseconds(200));
  EXPECT_EQ(Agent::nap(microseconds(49'000), true), microseconds(0));
  EXPECT_EQ(Agent::nap(microseconds(50'000), true), microseconds(200));
}

TEST_F(Operations, TheAgentKnowsWhetherThereAreGraphs) {
  EXPECT_FALSE(runtime_.agent().has_graphs());
  Operation* const operation = made().operation;
  void* const exec = captured(operation);
  EXPECT_TRUE(runtime_.agent().has_graphs());
  cuGraphExecDestroy(exec);
  EXPECT_FALSE(runtime_.agent().has_graphs());
  runtime_.release(operation);
}

TEST_F(Operations, AKernelStartsItItself) {
  Buffer from(counting(10), false), to(Numbers(10), false);
  Operation* const operation =
      make_collective(&runtime_, &library_, 0, 0, What::sum, 0, from, to, 1, 1, nullptr).operation;
  const auto flags = operation->flags();
  ASSERT_TRUE(flags);
  static weft_gpu_flags given;
  given = *flags;
  given.sent = static_cast<std::uint64_t*>(standin_data(given.sent));
  standin_add_kernel("test_three_rounds", 0, nullptr, [](void* const*) {
    for (int round = 0; round < 3; ++round) {
      weft_device_start(given);
      weft_device_wait(given);
    }
  });
  void* kernel = nullptr;
  ASSERT_EQ(cuModuleGetFunction(&kernel, nullptr, "test_three_rounds"), kSuccess);
  ASSERT_EQ(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr), kSuccess);
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
  EXPECT_EQ(to.content(), from.content());
  Operation* const copied = made().operation;
  EXPECT_NE(message(copied->flags() ? Result<bool>(true) : copied->flags().error()).find("copied"),
            std::string::npos);
  Operation* const once = make_collective(&runtime_, &library_, 0, -1, What::sum, 0, from, to, 1, 1,
                                          std::make_shared<Order>())
                              .operation;
  EXPECT_NE(message(once->flags() ? Result<bool>(true) : once->flags().error()).find("persistent"),
            std::string::npos);
  runtime_.release(operation);
  runtime_.release(copied);
  runtime_.release(once);
}

}  // namespace
}  // namespace weft::gpu
