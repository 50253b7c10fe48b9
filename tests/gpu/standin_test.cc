// The stand-in for CUDA's driver is as strict as the driver about copies: they must stay within one
// allocated block.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "ranks.h"

namespace weft::gpu {
namespace {

class StandIn : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = 800, kInside = 792;

  static void SetUpTestSuite() { use_device(); }  // before any of the buffers is allocated
  void SetUp() override { EXPECT_EQ(cuStreamCreate(&stream_, 1), kSuccess); }
  void TearDown() override {
    cuStreamDestroy_v2(stream_);
    standin_forget_errors();
  }
  int copied(Address to, Address from, std::size_t bytes) {
    return (*driver())->copy(to, from, bytes, stream_);
  }
  static Address freed() {
    const Buffer gone(Numbers(100), true);
    return gone.address();
  }

  Buffer device_{Numbers(100), true}, other_{Numbers(100), true}, pinned_{Numbers(100), false};
  Stream stream_ = nullptr;
};

TEST_F(StandIn, CopiesWithinOneBlock) {
  for (const Buffer* one : {&other_, &pinned_}) {
    EXPECT_EQ(copied(device_.address(), one->address(), kBytes), kSuccess);
    EXPECT_EQ(copied(one->address() + kInside, device_.address(), kBytes - kInside), kSuccess);
    // The next call does not wait for the stream.
    EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
    EXPECT_EQ(cuMemcpy(device_.address(), one->address(), kBytes), kSuccess);
  }
  EXPECT_EQ((*driver())->fill(device_.address(), 1, kBytes, stream_), kSuccess);
  EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
}

TEST_F(StandIn, RefusesCopiesBeyondIt) {
  const int refused = standin::kInvalidValue;
  EXPECT_EQ(copied(device_.address(), other_.address() + 8, kBytes), refused);
  EXPECT_EQ(copied(device_.address() + kInside, pinned_.address(), 9), refused);
  EXPECT_EQ(copied(pinned_.address() + kInside, device_.address(), 9), refused);
  EXPECT_EQ(cuMemcpy(device_.address() + 8, other_.address(), kBytes), refused);
  Numbers here(200);
  EXPECT_EQ(cuMemcpy(reinterpret_cast<Address>(here.data()), device_.address(), kBytes + 8),
            refused);
  EXPECT_EQ((*driver())->fill(device_.address() + 8, 1, kBytes, stream_), refused);
  EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
}

TEST_F(StandIn, CopiesRowsWithinOneBlock) {
  const auto copied_rows = [this](std::size_t pitch, std::size_t rows) {
    const RowsCopy all{{.address = device_.address(), .pitch = pitch},
                       {.address = pinned_.address(), .pitch = 8},
                       8,
                       rows};
    return (*driver())->copy_rows(&all, stream_);
  };
  enqueue_affine(device_, 0, 5, stream_);
  EXPECT_EQ(copied_rows(88, 10), kSuccess);  // from the first number to the last one
  EXPECT_EQ(copied_rows(96, 10), standin::kInvalidValue);
  EXPECT_EQ(copied_rows(4, 10), standin::kInvalidValue);
  EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
  Numbers right(100);
  std::fill(right.begin(), right.begin() + 10, 5);
  EXPECT_EQ(pinned_.content(), right);
}

TEST_F(StandIn, RefusesCopiesOfFreedMemory) {
  const int refused = standin::kInvalidValue;
  const Address gone = freed();
  EXPECT_EQ(copied(gone, device_.address(), 8), refused);
  EXPECT_EQ(copied(device_.address(), gone, 8), refused);
  EXPECT_EQ(cuMemcpy(device_.address(), gone, 8), refused);
  EXPECT_EQ((*driver())->fill(gone, 1, 8, stream_), refused);
}

TEST_F(StandIn, TheDefaultStreamWaitsForBlockingOnesAlone) {
  static std::atomic<bool> may_continue;
  void* kernel = nullptr;
  standin_add_kernel("test_waits", 0, nullptr, [](void* const*) {
    while (!may_continue) std::this_thread::yield();
  });
  ASSERT_EQ(cuModuleGetFunction(&kernel, nullptr, "test_waits"), kSuccess);
  for (const bool blocking : {false, true}) {
    Stream stream = nullptr;
    std::atomic<bool> copied{false};
    may_continue = false;
    ASSERT_EQ(cuStreamCreate(&stream, blocking ? 0 : 1), kSuccess);
    ASSERT_EQ(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), kSuccess);
    std::thread other([&] {
      use_device();
      EXPECT_EQ(cuMemcpy(device_.address(), other_.address(), kBytes), kSuccess);
      copied = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(blocking && copied);
    may_continue = may_continue || blocking;
    other.join();
    may_continue = true;
    EXPECT_EQ(cuStreamDestroy_v2(stream), kSuccess);
  }
}

TEST_F(StandIn, TheDefaultStreamBreaksCaptures) {
  constexpr int kGlobal = 0, kLocal = 1;
  const auto broken_by_copy = [this](int mode, bool blocking) {
    Stream stream = nullptr;
    void* graph = nullptr;
    EXPECT_EQ(cuStreamCreate(&stream, blocking ? 0 : 1), kSuccess);
    EXPECT_EQ(cuStreamBeginCapture_v2(stream, mode), kSuccess);
    std::thread([this] {
      use_device();
      cuMemcpy(device_.address(), other_.address(), kBytes);
    }).join();
    const int code = cuStreamEndCapture(stream, &graph);
    if (code == kSuccess) cuGraphDestroy(graph);
    cuStreamDestroy_v2(stream);
    return code == standin::kCaptureInvalidated;
  };
  EXPECT_TRUE(broken_by_copy(kGlobal, false));
  EXPECT_FALSE(broken_by_copy(kLocal, false));
  EXPECT_TRUE(broken_by_copy(kLocal, true));
}

TEST_F(StandIn, AGraphThatCopiesFreedMemoryIsAnErrorOfTheDevice) {
  void *graph = nullptr, *exec = nullptr;
  {
    const Buffer gone(Numbers(100), true);
    ASSERT_EQ(cuStreamBeginCapture_v2(stream_, 0), kSuccess);
    EXPECT_EQ(copied(device_.address(), gone.address(), kBytes), kSuccess);
    ASSERT_EQ(cuStreamEndCapture(stream_, &graph), kSuccess);
  }
  ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), kSuccess);
  EXPECT_EQ(cuGraphLaunch(exec, stream_), kSuccess);
  EXPECT_EQ(cuStreamSynchronize(stream_), standin::kIllegalAddress);
  cuGraphExecDestroy(exec);
  cuGraphDestroy(graph);
}

}  // namespace
}  // namespace weft::gpu
