// A fixture for tests of one rank's collectives in streams. Each test ends by synchronising, so no
// stream may wait for ever.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>

#include "ranks.h"

namespace weft::gpu {

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
  // Returns the collective of a single rank, whose sum is its own contribution.
  Made made(std::size_t chunks = 1, std::shared_ptr<Order> order = nullptr) {
    return make_collective(&runtime_, &library_, 0, order ? -1 : next_number_++, What::sum, 0,
                           from_, to_, chunks, 1, order);
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

  Library library_{1}, two_{2};  // used by the agent until it is stopped
  Runtime runtime_{**driver(), Options{.copied_by_kernels = 0}};
  Buffer from_{counting(100), true}, to_{Numbers(100), true};
  Stream stream_ = nullptr;
  int next_number_ = 0;
};

}  // namespace weft::gpu
