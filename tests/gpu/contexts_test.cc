// Several devices and contexts in one process: which resources belong to which, and what happens
// when a device is reset.
#include <chrono>
#include <cstdlib>
#include <thread>

#include "operations.h"

namespace weft::gpu {
namespace {

class Contexts : public Operations {
 protected:
  static void SetUpTestSuite() { setenv("WEFT_STANDIN_DEVICES", "2", 1); }
  static void TearDownTestSuite() { unsetenv("WEFT_STANDIN_DEVICES"); }
  void TearDown() override {
    use_device();
    Operations::TearDown();
  }

  static void use(int device) {
    void* context = nullptr;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, device), kSuccess);
    ASSERT_EQ(cuCtxSetCurrent(context), kSuccess);
  }
  static Stream stream_here() {
    Stream made = nullptr;
    EXPECT_EQ(cuStreamCreate(&made, 1), kSuccess);
    return made;
  }
  // Checks that a collective moves `from` to `to`, in a new stream of the current context.
  void expect_arrival(const Buffer& from, const Buffer& to) {
    expect_arrival(&by_kernels_, from, to);
  }
  void expect_arrival(Runtime* runtime, const Buffer& from, const Buffer& to) {
    Stream const stream = stream_here();
    Operation* const one = make_collective(runtime, &library_, 0, next_number_++, What::sum, 0,
                                           from, to, 1, 1, nullptr)
                               .operation;
    EXPECT_EQ(message(one->run(stream)), "");
    EXPECT_EQ(cuStreamSynchronize(stream), kSuccess);
    runtime->release(one);
    EXPECT_EQ(to.content(), from.content());
    cuStreamDestroy_v2(stream);
  }

  Runtime by_kernels_{**driver()};
};

TEST_F(Contexts, ADeviceThatThereIsNotIsRefused) {
  void* context = nullptr;
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 1), kSuccess);
  EXPECT_NE(cuDevicePrimaryCtxRetain(&context, 2), kSuccess);
}

TEST_F(Contexts, ARankUsesOneDeviceAfterTheOther) {
  for (const int device : {0, 1, 0}) {
    use(device);
    expect_arrival(Buffer(counting(100), true), Buffer(Numbers(100), true));
  }
}

TEST_F(Contexts, TwoOfOneDevice) {
  const Buffer from(counting(100), true), to(Numbers(100), true);
  const auto first = by_kernels_.context();
  void* own = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&own, 0, 0), kSuccess);
  const auto second = by_kernels_.context();
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  expect_arrival(from, to);
}

// Kernels cannot access the buffers, so the driver copies them.
TEST_F(Contexts, BuffersOfAnotherDevice) {
  use(1);
  const Buffer from(counting(100), true), to(Numbers(100), true);
  use(0);
  expect_arrival(from, Buffer(Numbers(100), true));
  expect_arrival(Buffer(counting(100), true), to);
}

TEST_F(Contexts, AStreamOfAnotherDeviceIsRefused) {
  use(1);
  Stream const other = stream_here();
  use(0);
  Operation* const one = made().operation;
  const std::string why = message(one->start(other));
  EXPECT_NE(why.find("CUDA_ERROR_INVALID_HANDLE"), std::string::npos) << why;
  runtime_.release(one);
  EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
  cuStreamDestroy_v2(other);
}

// Streams and prepared collectives exist longer than the device's context.
TEST_F(Contexts, ADeviceThatIsReset) {
  use(1);
  Stream const before = stream_here();
  const Buffer from(counting(100), true), to(Numbers(100), true);
  const auto prepared = [&] {
    return make_collective(&by_kernels_, &library_, 0, next_number_++, What::sum, 0, from, to, 1, 1,
                           nullptr)
        .operation;
  };
  Operation *const first = prepared(), *const second = prepared();
  ASSERT_EQ(cuDevicePrimaryCtxReset_v2(1), kSuccess);
  const auto gone = by_kernels_.context();
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().message, "cuCtxGetId: CUDA_ERROR_CONTEXT_IS_DESTROYED");
  EXPECT_NE(message(first->run(before)), "");
  use(1);
  Stream const after = stream_here();
  EXPECT_NE(message(second->run(after)), "");
  for (Operation* one : {first, second}) by_kernels_.release(one);
  expect_arrival(Buffer(counting(100), true), Buffer(Numbers(100), true));
  for (Stream one : {before, after}) cuStreamDestroy_v2(one);
}

// Operations that are complete and released are freed only when somebody collects them, or never.
TEST_F(Contexts, ADeviceThatIsResetAfterItsCollectivesHaveEnded) {
  use(1);
  {
    const Buffer from(counting(100), true), to(Numbers(100), true);
    expect_arrival(from, to);
  }
  ASSERT_EQ(cuDevicePrimaryCtxReset_v2(1), kSuccess);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));  // time for the agent to poll
  use(0);
  // Frees released operations.
  expect_arrival(Buffer(counting(100), true), Buffer(Numbers(100), true));
  EXPECT_EQ(by_kernels_.agent().stop(std::chrono::seconds(1)), 0);
}

// A driver before CUDA 12 does not number contexts. After the reset the context has the same handle
// as before.
TEST_F(Contexts, ADeviceThatIsResetUnderADriverThatCountsNoContexts) {
  Driver old = **driver();
  old.context_id = nullptr;
  Runtime runtime(old);
  use(1);
  const auto before = runtime.context(), again = runtime.context();
  ASSERT_TRUE(before && again);
  EXPECT_EQ(*before, *again);
  {
    const Buffer from(counting(100), true), to(Numbers(100), true);
    expect_arrival(&runtime, from, to);
  }
  ASSERT_EQ(cuDevicePrimaryCtxReset_v2(1), kSuccess);
  EXPECT_TRUE((*before)->is_gone());
  use(1);
  const auto after = runtime.context();
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_NE(*before, *after);
  EXPECT_FALSE((*after)->is_gone());
  expect_arrival(&runtime, Buffer(counting(100), true), Buffer(Numbers(100), true));
  EXPECT_EQ(runtime.agent().stop(std::chrono::seconds(1)), 0);
}

TEST_F(Contexts, AThreadHasAStackOfThem) {
  void *first = nullptr, *second = nullptr, *found = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&first, 0), kSuccess);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&second, 1), kSuccess);
  ASSERT_EQ(cuCtxPushCurrent_v2(second), kSuccess);
  EXPECT_EQ(cuCtxGetCurrent(&found), kSuccess);
  EXPECT_EQ(found, second);
  EXPECT_EQ(cuCtxPopCurrent_v2(&found), kSuccess);
  EXPECT_EQ(found, second);
  EXPECT_EQ(cuCtxGetCurrent(&found), kSuccess);
  EXPECT_EQ(found, first);
}

}  // namespace
}  // namespace weft::gpu
