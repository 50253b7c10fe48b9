// Chunks of long collectives that use a few pinned buffers in turn (gpu/relay.h).
#include <chrono>
#include <thread>

#include "operations.h"

namespace weft::gpu {
namespace {

TEST_F(Operations, ChunksTakeTurnsOnAFewBuffers) {
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

// A collective that records what the agent has done with its chunks, and completes a chunk when the
// test permits it. Like some MPI libraries it leaves another context current, or none.
struct Watched : Collective {
  explicit Watched(std::size_t chunks) : ended(chunks) {}
  Result<bool> start(std::size_t chunk) override {
    cuCtxSetCurrent(nullptr);
    began[chunk] = true;
    return true;
  }
  Result<bool> test(std::size_t chunk) override {
    cuCtxSetCurrent(nullptr);
    if (fails && chunk == 1) return Error{"the network is gone"};
    return ended[chunk].load();
  }
  void let_end(std::size_t first, std::size_t last) {
    for (std::size_t chunk = first; chunk < last; ++chunk) ended[chunk] = true;
  }
  static constexpr std::size_t kMost = 8;
  std::atomic<bool> began[kMost]{};
  std::vector<std::atomic<bool>> ended;
  std::atomic<bool> fails{false};
};

class Turns : public Operations {
 protected:
  static constexpr std::size_t kChunks = 6, kBuffers = 3, kChunkBytes = 64;

  void SetUp() override {
    Operations::SetUp();
    const auto pinned = (*runtime_.context())->pinned(kBuffers * kChunkBytes);
    ASSERT_TRUE(pinned);
    for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
      std::byte* const memory = pinned->memory + chunk % kBuffers * kChunkBytes;
      const Address offset = chunk * kChunkBytes;
      chunks_.push_back({{{from_.address() + offset, memory, kChunkBytes}},
                         {{to_.address() + offset, memory, kChunkBytes}}});
    }
    auto collective = std::make_unique<Watched>(kChunks);
    watched_ = collective.get();
    const auto made = runtime_.add(*runtime_.context(), chunks_, std::move(collective), *pinned,
                                   order_, kBuffers);
    ASSERT_TRUE(made);
    operation_ = *made;
    ASSERT_TRUE(operation_->start(stream_));
  }
  void wait_until_began(std::size_t chunk) const {
    while (!watched_->began[chunk]) std::this_thread::yield();
  }

  std::vector<Chunk> chunks_;
  Watched* watched_ = nullptr;
  std::shared_ptr<Order> order_ = std::make_shared<Order>();
  Operation* operation_ = nullptr;
};

TEST_F(Turns, TheNextChunksComeWhileOthersTravel) {
  wait_until_began(kBuffers - 1);  // while no chunk is complete
  watched_->let_end(0, 1);
  wait_until_began(kBuffers);  // this chunk uses the first one's buffer
  EXPECT_FALSE(watched_->ended[1]);
  watched_->let_end(0, kChunks);
  ASSERT_TRUE(operation_->wait(stream_));
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
  Numbers right(100);  // the collective does not change the chunks
  std::iota(right.begin(), right.begin() + kChunks * kChunkBytes / sizeof(Number), 1);
  EXPECT_EQ(to_.content(), right);
  runtime_.release(operation_);
}

TEST_F(Turns, ABufferIsFreeWhenItsChunkHasEnded) {
  wait_until_began(kBuffers - 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(watched_->began[kBuffers]);
  watched_->let_end(0, kChunks);
  ASSERT_TRUE(operation_->wait(stream_));
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
  EXPECT_TRUE(watched_->began[kChunks - 1]);
  runtime_.release(operation_);
}

TEST_F(Turns, TheNextOneInOrderStartsBehindTheLastChunk) {
  auto collective = std::make_unique<Watched>(1);
  Watched* const next = collective.get();
  const auto made =
      runtime_.add(*runtime_.context(), std::vector<Chunk>(1), std::move(collective), {}, order_);
  ASSERT_TRUE(made);
  ASSERT_TRUE((*made)->start(stream_));
  wait_until_began(kBuffers - 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(next->began[0]);
  watched_->let_end(0, kChunks - 1);
  while (!next->began[0]) std::this_thread::yield();  // though the last chunk is not complete
  watched_->let_end(kChunks - 1, kChunks);
  next->let_end(0, 1);
  for (Operation* const one : {operation_, *made}) {
    ASSERT_TRUE(one->wait(stream_));
    runtime_.release(one);
  }
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);
}

TEST_F(Turns, MemoryOfAFailedOneIsKeptUntilItsOtherChunksHaveEnded) {
  wait_until_began(kBuffers - 1);
  watched_->fails = true;
  std::string said;
  while (said.empty()) said = message(operation_->wait(stream_));
  EXPECT_EQ(said, "the network is gone");
  ASSERT_EQ(cuStreamSynchronize(stream_), kSuccess);  // nothing waits
  runtime_.release(operation_);
  const auto taken = [&] {
    runtime_.collect();
    const auto pinned = (*runtime_.context())->pinned(kBuffers * kChunkBytes);
    EXPECT_TRUE(pinned);
    return pinned->memory;
  };
  const std::byte* const its = chunks_[0].in[0].host;
  for (int i = 0; i < 20; ++i) {
    EXPECT_NE(taken(), its);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  watched_->let_end(0, kChunks);
  while (taken() != its) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// A collective that fails when it is told to, while copies may still be in flight.
struct Copying : Collective {
  Result<bool> start(std::size_t) override {
    return may_fail ? Result<bool>(Error{"the network is gone"}) : false;
  }
  Result<bool> test(std::size_t) override { return true; }
  bool has_released_buffers() override { return have_ended.load(); }
  std::atomic<bool> may_fail{false}, have_ended{false};
};

TEST_F(Operations, AFailureLetsTheStreamGoOnWhenTheAgentsCopiesHaveEnded) {
  auto collective = std::make_unique<Copying>();
  Copying* const copying = collective.get();
  const auto made =
      runtime_.add(*runtime_.context(), std::vector<Chunk>(1), std::move(collective), {}, nullptr);
  ASSERT_TRUE(made);
  ASSERT_TRUE((*made)->start(stream_));
  void* passed = nullptr;
  ASSERT_EQ(cuEventCreate(&passed, 2), kSuccess);
  ASSERT_TRUE((*made)->wait(stream_));
  ASSERT_EQ(cuEventRecord(passed, stream_), kSuccess);
  copying->may_fail = true;
  while ((*made)->status()) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ((*driver())->query(passed), kNotReady);
  copying->have_ended = true;
  EXPECT_EQ(cuStreamSynchronize(stream_), kSuccess);
  runtime_.release(*made);
  cuEventDestroy_v2(passed);
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

}  // namespace
}  // namespace weft::gpu
