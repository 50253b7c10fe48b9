// Collectives in streams, one by one: parts, order, graphs and how long they hold what they use,
// and what is said where something fails. Nothing may wait for ever: each test ends by
// synchronising.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "gpu/image.h"
#include "ranks.h"

namespace weft::gpu {
namespace {

class Operations : public ::testing::Test {
 protected:
  void SetUp() override {
    use_device();
    EXPECT_EQ(cuStreamCreate(&stream_, 1), kSuccess);
  }
  void TearDown() override {
    runtime_.agent().stop();
    standin_forget_errors();
    EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
    cuStreamDestroy_v2(stream_);
  }

  static Numbers counting(std::size_t count) {
    Numbers content(count);
    std::iota(content.begin(), content.end(), 1);
    return content;
  }
  // Of one rank: the sum is what it was.
  Made made(std::size_t parts = 1, std::shared_ptr<Order> order = nullptr) {
    return make_collective(&runtime_, &library_, 0, order ? -1 : next_number_++, What::sum, 0,
                           from_, to_, parts, 1, order);
  }
  void* captured(Operation* operation) {
    EXPECT_EQ(cuStreamBeginCapture_v2(stream_, 0), kSuccess);
    enqueue_affine(from_, 1, 1, stream_);
    EXPECT_TRUE(operation->start(stream_));
    EXPECT_TRUE(operation->wait(stream_));
    void *graph = nullptr, *exec = nullptr;
    EXPECT_EQ(cuStreamEndCapture(stream_, &graph), kSuccess);
    EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), kSuccess);
    cuGraphDestroy(graph);
    return exec;
  }
  static std::string message(const Result<bool>& result) {
    return result ? "" : result.error().message;
  }

  Library library_{1}, two_{2};  // which the agent uses until it is stopped
  Runtime runtime_{**driver(), Options{.copied_by_kernels = 0}};
  Buffer from_{counting(100), true}, to_{Numbers(100), true};
  Stream stream_ = nullptr;
  int next_number_ = 0;
};

TEST_F(Operations, ArrivesInPartsInTheStream) {
  Operation* const operation = made(7).operation;
  enqueue_affine(from_, 2, 0, stream_);
  ASSERT_TRUE(operation->start(stream_));
  enqueue_affine(from_, 0, 0, stream_);  // what is sent has been copied before
  ASSERT_TRUE(operation->wait(stream_));
  enqueue_affine(to_, 1, 1, stream_);
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
  Numbers right(100);
  for (std::size_t i = 0; i < 100; ++i) right[i] = 2 * (static_cast<Number>(i) + 1) + 1;
  EXPECT_EQ(to_.content(), right);
  runtime_.release(operation);
}

// Two of the driver's for each of them: a kernel that tells, and one that waits.
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
  // The agent may be behind by a few.
  EXPECT_LE(standin_allocated(), before + 20);
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

// ---- Parts that take turns
// -----------------------------------------------------------------------

TEST_F(Operations, PartsTakeTurnsOnAFewPlaces) {
  Operation* const operation =
      make_collective(&runtime_, &library_, 0, 0, What::sum, 0, from_, to_, 7, 1, nullptr, 2)
          .operation;
  for (int round = 0; round < 3; ++round) {
    enqueue_affine(from_, 2, 0, stream_);
    ASSERT_TRUE(operation->run(stream_));
  }
  enqueue_affine(to_, 1, 1, stream_);
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
  Numbers right = counting(100);
  for (Number& one : right) one = one * 8 + 1;
  EXPECT_EQ(to_.content(), right);
  runtime_.release(operation);
}

// What the agent has done with its parts, of which the first one ends when the test says so.
struct Watched : Collective {
  explicit Watched(std::size_t parts) : ended(parts) {}
  Result<bool> start(std::size_t part) override {
    began[part] = true;
    return true;
  }
  Result<bool> test(std::size_t part) override {
    if (fails && part == 1) return Error{"the network is gone"};
    return ended[part].load();
  }
  void let_end(std::size_t first, std::size_t last) {
    for (std::size_t part = first; part < last; ++part) ended[part] = true;
  }
  static constexpr std::size_t kMost = 8;
  std::atomic<bool> began[kMost]{};
  std::vector<std::atomic<bool>> ended;
  std::atomic<bool> fails{false};
};

class Turns : public Operations {
 protected:
  static constexpr std::size_t kParts = 6, kPlaces = 3, kPartBytes = 64;

  void SetUp() override {
    Operations::SetUp();
    const auto pinned = (*runtime_.context())->pinned(kPlaces * kPartBytes);
    ASSERT_TRUE(pinned);
    for (std::size_t part = 0; part < kParts; ++part) {
      std::byte* const memory = pinned->memory + part % kPlaces * kPartBytes;
      const Address offset = part * kPartBytes;
      parts_.push_back({{{from_.address() + offset, memory, kPartBytes}},
                        {{to_.address() + offset, memory, kPartBytes}}});
    }
    auto collective = std::make_unique<Watched>(kParts);
    watched_ = collective.get();
    const auto made =
        runtime_.add(*runtime_.context(), parts_, std::move(collective), *pinned, order_, kPlaces);
    ASSERT_TRUE(made);
    operation_ = *made;
    ASSERT_TRUE(operation_->start(stream_));
  }
  void wait_until_began(std::size_t part) const {
    while (!watched_->began[part]) std::this_thread::yield();
  }

  std::vector<Part> parts_;
  Watched* watched_ = nullptr;
  std::shared_ptr<Order> order_ = std::make_shared<Order>();
  Operation* operation_ = nullptr;
};

TEST_F(Turns, TheNextPartsComeWhileOthersTravel) {
  wait_until_began(kPlaces - 1);  // while none has ended
  watched_->let_end(0, 1);
  wait_until_began(kPlaces);  // on the place of the first one
  EXPECT_FALSE(watched_->ended[1]);
  watched_->let_end(0, kParts);
  ASSERT_TRUE(operation_->wait(stream_));
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
  Numbers right(100);  // of parts that come and leave as they are
  std::iota(right.begin(), right.begin() + kParts * kPartBytes / sizeof(Number), 1);
  EXPECT_EQ(to_.content(), right);
  runtime_.release(operation_);
}

TEST_F(Turns, APlaceIsFreeWhenItsPartHasEnded) {
  wait_until_began(kPlaces - 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(watched_->began[kPlaces]);
  watched_->let_end(0, kParts);
  ASSERT_TRUE(operation_->wait(stream_));
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
  EXPECT_TRUE(watched_->began[kParts - 1]);
  runtime_.release(operation_);
}

TEST_F(Turns, TheNextOneInOrderStartsBehindTheLastPart) {
  auto collective = std::make_unique<Watched>(1);
  Watched* const next = collective.get();
  const auto made =
      runtime_.add(*runtime_.context(), std::vector<Part>(1), std::move(collective), {}, order_);
  ASSERT_TRUE(made);
  ASSERT_TRUE((*made)->start(stream_));
  wait_until_began(kPlaces - 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(next->began[0]);
  watched_->let_end(0, kParts - 1);
  while (!next->began[0]) std::this_thread::yield();  // though the last part has not ended
  watched_->let_end(kParts - 1, kParts);
  next->let_end(0, 1);
  for (Operation* const one : {operation_, *made}) {
    ASSERT_TRUE(one->wait(stream_));
    runtime_.release(one);
  }
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
}

TEST_F(Turns, MemoryOfAFailedOneIsHeldUntilItsOtherPartsHaveEnded) {
  wait_until_began(kPlaces - 1);
  watched_->fails = true;
  std::string said;
  while (said.empty()) said = message(operation_->wait(stream_));
  EXPECT_EQ(said, "the network is gone");
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);  // nothing waits
  runtime_.release(operation_);
  const auto taken = [&] {
    runtime_.collect();
    const auto pinned = (*runtime_.context())->pinned(kPlaces * kPartBytes);
    EXPECT_TRUE(pinned);
    return pinned->memory;
  };
  const std::byte* const its = parts_[0].in[0].host;
  for (int i = 0; i < 20; ++i) {
    EXPECT_NE(taken(), its);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  watched_->let_end(0, kParts);
  while (taken() != its) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_F(Operations, AFailedCopyOfTheAgentsIsSaidByItsCall) {
  for (const char* call : {"cuMemcpyAsync", "cuEventQuery"}) {
    for (const int nth : {1, 3}) {
      Operation* const operation = make_collective(&runtime_, &library_, 0, next_number_++,
                                                   What::sum, 0, from_, to_, 4, 1, nullptr, 2)
                                       .operation;
      ASSERT_TRUE(operation->start(stream_)) << call;
      ASSERT_TRUE(operation->wait(stream_)) << call;
      ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
      standin_fail(call, nth, standin::kOutOfMemory);
      ASSERT_TRUE(operation->start(stream_)) << call;
      std::string said;
      while (said.empty()) said = message(operation->wait(stream_));
      EXPECT_EQ(said, std::string(call) + ": CUDA_ERROR_OUT_OF_MEMORY");
      standin_forget_errors();
      EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
      runtime_.release(operation);
    }
  }
}

// ---- Failures
// -------------------------------------------------------------------------------------

TEST_F(Operations, EveryFailureOfTheDriversIsSaidByItsCall) {
  for (const char* call :
       {"cuMemcpyAsync", "cuLaunchKernel", "cuEventRecord", "cuStreamGetCaptureInfo"}) {
    for (int nth = 1; nth <= (std::string(call) == "cuMemcpyAsync" ? 3 : 1); ++nth) {
      Operation* const operation = made(3).operation;
      standin_fail(call, nth, standin::kOutOfMemory);
      const std::string said = message(operation->start(stream_));
      EXPECT_EQ(said, std::string(call) + ": CUDA_ERROR_OUT_OF_MEMORY");
      EXPECT_EQ(message(operation->wait(stream_)), said);  // and nothing waits
      runtime_.release(operation);
      standin_forget_errors();
    }
  }
  EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
}

// Ends at once. Its token tells how many there are.
struct Counted : Collective {
  explicit Counted(std::shared_ptr<int> one) : token(std::move(one)) {}
  Result<bool> start(std::size_t) override { return true; }
  Result<bool> test(std::size_t) override { return true; }
  const std::shared_ptr<int> token;
};

TEST_F(Operations, AGraphThatCannotKeepItKeepsNothing) {
  for (const char* call : {"cuUserObjectCreate", "cuGraphRetainUserObject"}) {
    const auto token = std::make_shared<int>();
    const auto made = runtime_.add(*runtime_.context(), std::vector<Part>(1),
                                   std::make_unique<Counted>(token), {}, {});
    ASSERT_TRUE(made);
    ASSERT_EQ(cuStreamBeginCapture_v2(stream_, 0), kSuccess);
    standin_fail(call, 1, standin::kOutOfMemory);
    EXPECT_EQ(message((*made)->start(stream_)), std::string(call) + ": CUDA_ERROR_OUT_OF_MEMORY");
    void* graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(stream_, &graph), kSuccess);
    cuGraphDestroy(graph);
    runtime_.release(*made);
    for (int i = 0; i < 1000 && token.use_count() > 1; ++i) {
      runtime_.collect();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(token.use_count(), 1) << call;  // it is gone
  }
}

TEST_F(Operations, EveryFailureOfTheFirstUseIsSaid) {
  for (const char* call : {"cuModuleLoadData", "cuModuleGetFunction", "cuFuncLoad", "cuMemAlloc",
                           "cuMemHostAlloc", "cuMemHostGetDevicePointer", "cuStreamCreate",
                           "cuMemsetD8Async", "cuStreamSynchronize", "cuEventCreate"}) {
    Runtime fresh(**driver());
    standin_fail(call, 1, standin::kOutOfMemory);
    const auto context = fresh.context();
    std::string said = context ? "" : context.error().message;
    if (context) {
      auto collective =
          std::make_unique<Planned>(&library_, 0, 0, What::sum, 0, std::vector<Range>(1), 1);
      const auto added = fresh.add(*context, std::vector<Part>(1), std::move(collective), {}, {});
      said = added ? "" : added.error().message;
    }
    EXPECT_NE(said.find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << call << ": " << said;
    standin_forget_errors();
  }
}

TEST_F(Operations, WhyTheKernelsAreNotLoadedIsSaid) {
  const auto said = [](int version) {
    constexpr int kNoBinaryForDevice = 209;
    Runtime fresh(**driver());
    standin_set_version(version);
    standin_fail("cuModuleLoadData", 1, kNoBinaryForDevice);
    const auto context = fresh.context();
    standin_set_version(12040);
    return context ? "" : context.error().message;
  };
  const auto expected = [](const std::string& why) {
    return "cuModuleLoadData: an unknown error (" + why + ")";
  };
  const std::string none = "this build of Weft has no kernels, since there was no nvcc";
  const bool there = weft_kernel_image_there;
  EXPECT_EQ(said(10020), expected(there ? "the driver is that of CUDA 10.2; Weft's kernels need"
                                          " that of CUDA " +
                                              oldest_cuda() + " or later"
                                        : none));
  EXPECT_EQ(
      said(weft_kernel_image_cuda),
      expected(there ? "Weft's kernels are for devices of compute capability 7.5 or later" : none));
}

TEST_F(Operations, AFailedCollectiveLetsTheStreamGoOn) {
  for (const bool at_start : {true, false}) {
    const Made both = made(2);
    both.collective->plant("the network is gone", at_start);
    ASSERT_TRUE(both.operation->start(stream_));
    std::string said;
    while (said.empty()) said = message(both.operation->wait(stream_));
    EXPECT_EQ(said, "the network is gone");
    EXPECT_EQ(message(both.operation->start(stream_)), said);
    EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
    runtime_.release(both.operation);
  }
}

TEST_F(Operations, AFailureIsUntoldUntilSomebodyAsks) {
  const auto order = std::make_shared<Order>();
  const Made first = made(1, order), second = made(1, order), alone = made(2);
  EXPECT_EQ(message(first.operation->status()), "");
  first.collective->plant("the network is gone", false);
  alone.collective->plant("the cable is cut", true);
  for (const Made& one : {first, alone}) ASSERT_TRUE(one.operation->start(stream_));
  const std::string both =
      "2 collectives in streams failed, and no call has said so: the cable is cut";
  while (runtime_.untold().sentence() != both) std::this_thread::yield();
  EXPECT_EQ(message(alone.operation->status()), "the cable is cut");
  EXPECT_EQ(message(alone.operation->status()), "the cable is cut");
  EXPECT_EQ(runtime_.untold().sentence(),
            "a collective in streams failed, and no call has said so: the network is gone");
  EXPECT_EQ(message(first.operation->wait(stream_)), "the network is gone");
  std::string said;
  while (said.empty()) said = message(second.operation->status());
  EXPECT_EQ(said, "an earlier collective on this communicator has failed");
  EXPECT_EQ(runtime_.untold().sentence(), "");
  for (const Made& one : {first, second, alone}) runtime_.release(one.operation);
}

TEST_F(Operations, AfterAFailureNothingElseStartsInItsOrder) {
  const auto order = std::make_shared<Order>();
  const Made first = made(1, order), second = made(1, order);
  first.collective->plant("the network is gone", true);
  ASSERT_TRUE(first.operation->start(stream_));
  std::string said =
      message(second.operation->start(stream_));  // the first may have failed already
  while (said.empty()) said = message(second.operation->wait(stream_));
  EXPECT_EQ(said, "an earlier collective on this communicator has failed");
  EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
  runtime_.release(first.operation);
  runtime_.release(second.operation);
}

TEST_F(Operations, AnErrorInAnEarlierKernelIsSaidAtTheNextCall) {
  Operation* const operation = made().operation;
  void* kernel = nullptr;
  ASSERT_EQ(cuModuleGetFunction(&kernel, nullptr, "standin_fault"), kSuccess);
  ASSERT_EQ(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr), kSuccess);
  while (cuStreamSynchronize(stream_) == kSuccess) std::this_thread::yield();
  EXPECT_NE(message(operation->start(stream_)).find("CUDA_ERROR_ILLEGAL_ADDRESS"),
            std::string::npos);
  runtime_.release(operation);
}

TEST_F(Operations, ABufferThatIsFreedWhileAGraphHoldsItIsSaidAtTheNextCall) {
  auto gone = std::make_unique<Buffer>(counting(100), true);
  Operation* const operation =
      make_collective(&runtime_, &library_, 0, 0, What::sum, 0, from_, *gone, 2, 1, nullptr)
          .operation;
  void* const exec = captured(operation);
  ASSERT_EQ(cuGraphLaunch(exec, stream_), kSuccess);
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
  gone = nullptr;
  ASSERT_EQ(cuGraphLaunch(exec, stream_), kSuccess);
  EXPECT_EQ(cuStreamSynchronize(stream_), standin::kIllegalAddress);
  EXPECT_NE(message(operation->start(stream_)).find("CUDA_ERROR_ILLEGAL_ADDRESS"),
            std::string::npos);
  runtime_.release(operation);
  cuGraphExecDestroy(exec);
}

TEST_F(Operations, OneThatNobodyWaitedForIsNotStartedAgain) {
  // In a library of two ranks, the other of which never comes.
  Buffer from(counting(10), false), to(Numbers(10), false);
  Operation* const operation =
      make_collective(&runtime_, &two_, 0, 0, What::sum, 0, from, to, 1, 1, nullptr).operation;
  ASSERT_TRUE(operation->start(stream_));
  ASSERT_TRUE(operation->start(stream_));
  std::string said;
  while (said.empty()) said = message(operation->wait(stream_));
  EXPECT_EQ(said, "a collective was started again before it had been waited for");
  EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
  runtime_.release(operation);
}

TEST_F(Operations, OneThatWasNotStartedIsNotWaitedFor) {
  Operation* const operation = made().operation;
  EXPECT_EQ(message(operation->wait(stream_)),
            "a collective is waited for that was not started before");
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
  EXPECT_EQ(to_.content(), Numbers(100));  // as it was
  ASSERT_TRUE(operation->run(stream_));
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
  EXPECT_EQ(to_.content(), counting(100));
  runtime_.release(operation);
}

TEST_F(Operations, ACaptureTakesNothingFromOutside) {
  Operation* const outside = made(1, std::make_shared<Order>()).operation;
  ASSERT_TRUE(outside->start(stream_));
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, 0), kSuccess);
  EXPECT_NE(message(outside->wait(stream_)).find("outside of a capture"), std::string::npos);
  EXPECT_EQ(cuStreamSynchronize(stream_), standin::kCaptureUnsupported);  // breaks the capture
  Operation* const inside = made().operation;
  EXPECT_EQ(message(inside->start(stream_)),
            "the stream's capture has been invalidated by an earlier call");
  void* graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), standin::kCaptureInvalidated);
  ASSERT_TRUE(outside->wait(stream_));
  runtime_.release(outside);
  runtime_.release(inside);
}

TEST_F(Operations, WhatHasNotEndedIsGivenUpAtTheEnd) {
  // In a library of two ranks, the other of which never comes.
  Operation* const operation =
      make_collective(&runtime_, &two_, 0, 0, What::sum, 0, from_, to_, 2, 1, nullptr).operation;
  ASSERT_TRUE(operation->start(stream_));
  ASSERT_TRUE(operation->wait(stream_));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(runtime_.agent().stop(), 1);
  EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
  EXPECT_EQ(message(operation->wait(stream_)), "MPI has been finalised");
  runtime_.release(operation);
}

TEST_F(Operations, AThreadOfWeftsTakesTheDevice) {
  const auto context = runtime_.context();
  ASSERT_TRUE(context);
  void *mine = nullptr, *its = nullptr;
  ASSERT_EQ((*driver())->current_context(&mine), kSuccess);
  std::thread([&] {
    (*context)->make_current();
    EXPECT_EQ((*driver())->current_context(&its), kSuccess);
  }).join();
  EXPECT_EQ(its, mine);
}

TEST_F(Operations, ValuesInStreamsEndWithTheFirstCapture) {
  Runtime runtime(**driver(), {OneKernel::automatic, Notify::stream});
  const Made both =
      make_collective(&runtime, &library_, 0, 0, What::sum, 0, from_, to_, 2, 1, nullptr);
  Operation* const operation = both.operation;
  const auto once = [&](const char* never) {
    standin_fail(never, 1, standin::kInvalidValue);  // it is not called
    ASSERT_TRUE(operation->run(stream_)) << never;
    standin_forget_errors();
  };
  once("cuLaunchKernel");
  once("cuLaunchKernel");
  void* const exec = captured(operation);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cuGraphLaunch(exec, stream_), kSuccess);
  once("cuStreamWriteValue64");
  once("cuStreamWaitValue64");
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
  Numbers right = counting(100);
  for (Number& one : right) one += 3;
  EXPECT_EQ(to_.content(), right);
  cuGraphExecDestroy(exec);
  runtime.release(operation);
}

TEST_F(Operations, ADeviceWithoutValuesInStreamsHasKernels) {
  standin_set_attribute(kDeviceHasStreamValues, 0);
  Runtime runtime(**driver(), {OneKernel::automatic, Notify::stream});
  const Made both =
      make_collective(&runtime, &library_, 0, 0, What::sum, 0, from_, to_, 1, 1, nullptr);
  standin_fail("cuStreamWriteValue64", 1, standin::kInvalidValue);
  ASSERT_TRUE(both.operation->run(stream_));
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
  EXPECT_EQ(to_.content(), counting(100));
  runtime.release(both.operation);
}

TEST_F(Operations, AFailedValueIsSaidByItsCall) {
  Runtime runtime(**driver(), {OneKernel::automatic, Notify::stream});
  for (const char* call : {"cuStreamWriteValue64", "cuStreamWaitValue64"}) {
    const Made both = make_collective(&runtime, &library_, 0, next_number_++, What::sum, 0, from_,
                                      to_, 1, 1, nullptr);
    standin_fail(call, 1, standin::kOutOfMemory);
    EXPECT_EQ(message(both.operation->run(stream_)),
              std::string(call) + ": CUDA_ERROR_OUT_OF_MEMORY");
    standin_forget_errors();
    runtime.release(both.operation);
  }
  EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
}

TEST_F(Operations, AThreadWithoutADeviceIsTold) {
  std::string said;
  std::thread([&] { said = runtime_.context().error().message; }).join();
  EXPECT_EQ(said, "no device is current on this thread: call cudaSetDevice and cudaFree(0) before");
}

}  // namespace
}  // namespace weft::gpu
