// Error messages if something fails or is called wrongly. After an error, no stream may wait for
// ever.
#include <chrono>
#include <thread>

#include "gpu/image.h"
#include "operations.h"

namespace weft::gpu {
namespace {

TEST_F(Operations, EveryFailureOfTheDriversIsSaidByItsCall) {
  for (const char* call :
       {"cuMemcpyAsync", "cuLaunchKernel", "cuEventRecord", "cuStreamGetCaptureInfo"}) {
    for (int nth = 1; nth <= (std::string(call) == "cuMemcpyAsync" ? 3 : 1); ++nth) {
      Operation* const operation = made(3).operation;
      standin_fail(call, nth, standin::kOutOfMemory);
      const std::string said = message(operation->start(stream_));
      EXPECT_EQ(said, std::string(call) + ": CUDA_ERROR_OUT_OF_MEMORY");
      EXPECT_EQ(message(operation->wait(stream_)), said);  // no stream waits
      runtime_.release(operation);
      standin_forget_errors();
    }
  }
  EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
}

// A collective that completes at once. The use count of the token tells how many such objects
// exist.
struct Counted : Collective {
  explicit Counted(std::shared_ptr<int> one) : token(std::move(one)) {}
  Result<bool> start(std::size_t) override { return true; }
  Result<bool> test(std::size_t) override { return true; }
  const std::shared_ptr<int> token;
};

TEST_F(Operations, AGraphThatCannotKeepItKeepsNothing) {
  for (const char* call : {"cuUserObjectCreate", "cuGraphRetainUserObject"}) {
    const auto token = std::make_shared<int>();
    const auto made = runtime_.add(*runtime_.context(), std::vector<Chunk>(1),
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
    EXPECT_EQ(token.use_count(), 1) << call;  // the collective has been freed
  }
}

TEST_F(Operations, EveryFailureOfTheFirstUseIsSaid) {
  for (const char* call : {"cuModuleLoadData", "cuModuleGetFunction", "cuFuncLoad", "cuMemAlloc",
                           "cuMemHostRegister", "cuMemHostGetDevicePointer", "cuStreamCreate",
                           "cuMemsetD8Async", "cuStreamSynchronize", "cuEventCreate"}) {
    Runtime fresh(**driver());
    standin_fail(call, 1, standin::kOutOfMemory);
    const auto context = fresh.context();
    std::string said = context ? "" : context.error().message;
    if (context) {
      auto collective =
          std::make_unique<Planned>(&library_, 0, 0, What::sum, 0, std::vector<Range>(1), 1);
      const auto added = fresh.add(*context, std::vector<Chunk>(1), std::move(collective), {}, {});
      said = added ? "" : added.error().message;
    }
    EXPECT_NE(said.find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << call << ": " << said;
    standin_forget_errors();
  }
}

TEST_F(Operations, AContextThatIsNotKnownIsSaid) {
  // 1: the query whether a context exists; 2: the query whose context it is.
  for (const int nth : {1, 2}) {
    Runtime fresh(**driver());
    standin_fail("cuCtxGetCurrent", nth, standin::kInvalidContext);
    const auto context = fresh.context();
    EXPECT_EQ(context ? "" : context.error().message,
              "cuCtxGetCurrent: CUDA_ERROR_INVALID_CONTEXT");
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
      message(second.operation->start(stream_));  // the first may already have failed
  while (said.empty()) said = message(second.operation->wait(stream_));
  EXPECT_EQ(said, "an earlier collective on this communicator has failed");
  EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
  runtime_.release(first.operation);
  runtime_.release(second.operation);
}

TEST_F(Operations, WhatWasEnqueuedBeforeWhatFailedGoesOn) {
  const auto order = std::make_shared<Order>();
  Operation *const first = made(2, order).operation, *const second = made(1, order).operation;
  order->break_from(1);  // what a failed start of `second` does
  EXPECT_TRUE(order->is_broken());
  std::string said;
  while (said.empty()) said = message(second->status());
  EXPECT_EQ(said, "an earlier collective on this communicator has failed");
  ASSERT_TRUE(first->start(stream_));
  ASSERT_TRUE(first->wait(stream_));
  EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
  EXPECT_EQ(message(first->status()), "");
  EXPECT_EQ(to_.content(), counting(100));
  runtime_.release(first);
  runtime_.release(second);
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
  // The buffers of a rank in a library of two ranks. The other rank never takes part.
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
  EXPECT_EQ(to_.content(), Numbers(100));  // unchanged
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
  // Ends the capture with an error.
  EXPECT_EQ(cuStreamSynchronize(stream_), standin::kCaptureUnsupported);
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
  // The collective of a rank in a library of two ranks. The other rank never takes part.
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
    standin_fail(never, 1, standin::kInvalidValue);  // a call that is not made
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
