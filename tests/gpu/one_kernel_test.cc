// Allreduces in one kernel on several ranks in one process, each with its own memory region. They
// run on the stand-in for CUDA's driver, whose kernels are the functions that run on the device. No
// kernel may wait for ever.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "group.h"

namespace weft::gpu {
namespace {

using Runtimes = std::vector<std::unique_ptr<Runtime>>;

Numbers filled(int rank, std::size_t count) {
  Numbers content(count);
  for (std::size_t i = 0; i < count; ++i) content[i] = static_cast<Number>(i) * 3 + rank * 100;
  return content;
}

// One operation for each rank, all of the same kind, with their buffers.
struct Ranks {
  std::vector<std::unique_ptr<Buffer>> from, to;
  std::vector<Operation*> operations;
  Numbers right;

  Ranks(std::size_t count, bool in_place,
        const std::function<Operation*(int, const Buffer&, const Buffer&)>& make, int ranks)
      : right(count) {
    for (int rank = 0; rank < ranks; ++rank) {
      const Numbers mine = filled(rank, count);
      for (std::size_t i = 0; i < count; ++i) right[i] += mine[i];
      from.push_back(std::make_unique<Buffer>(mine, true));
      to.push_back(std::make_unique<Buffer>(Numbers(count), true));
      operations.push_back(make(rank, *from.back(), in_place ? *from.back() : *to.back()));
    }
  }
};

class OneKernelTest : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3;

  void SetUp() override {
    use_device();
    for (int rank = 0; rank < kRanks; ++rank) {
      runtimes_.push_back(std::make_unique<Runtime>(**driver()));
      Stream made = nullptr;
      ASSERT_EQ(cuStreamCreate(&made, 1), kSuccess);
      streams_.push_back(made);
    }
  }
  void TearDown() override {
    for (auto& one : runtimes_) one->agent().stop();
    standin_forget_errors();
    for (Stream one : streams_) {
      EXPECT_EQ(cuStreamSynchronize(one), kSuccess);
      cuStreamDestroy_v2(one);
    }
    group_ = {};
  }

  void meet() {
    group_ = meet_all(pointers(), {});
    ASSERT_EQ(group_.why_not, "");
  }
  std::vector<Runtime*> pointers() const {
    std::vector<Runtime*> all;
    for (const auto& one : runtimes_) all.push_back(one.get());
    return all;
  }
  Runtime& runtime(int rank) { return *runtimes_[static_cast<std::size_t>(rank)]; }
  Stream stream(int rank) { return streams_[static_cast<std::size_t>(rank)]; }

  // Returns the operation of one rank that sums int64 in its buffers.
  Operation* sum(int rank, int spot, const Buffer& from, const Buffer& to) {
    return sum_by_kernel(&runtime(rank), group_, rank, spot, from, to);
  }
  // Returns a function that makes sums at the first spot, for Ranks.
  auto sums() {
    return
        [this](int rank, const Buffer& from, const Buffer& to) { return sum(rank, 0, from, to); };
  }
  // Checks that the operations have completed correctly, and releases them.
  void expect_right(const Ranks& all) {
    synchronise();
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(all.to[rank]->content(), all.right);
    }
    release(all);
  }
  // Checks that each operation returns an error at its next call, and releases them.
  void expect_given_up(const Ranks& all) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_NE(message(all.operations[rank]->run(streams_[rank])), "");
    }
    release(all);
  }
  void release(const Ranks& all) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      runtimes_[rank]->release(all.operations[rank]);
    }
  }
  void synchronise() {
    for (Stream one : streams_) EXPECT_EQ(cuStreamSynchronize(one), kSuccess);
  }
  static std::string message(const Result<bool>& result) {
    return result ? "" : result.error().message;
  }

  Runtimes runtimes_;
  std::vector<Stream> streams_;
  Group group_;
};

TEST_F(OneKernelTest, SumsOfAllLengthsInOneLaunch) {
  meet();
  for (const std::size_t count : {1, 2, 3, 63, 1024, 1025, 5000, 32768}) {
    for (const bool in_place : {false, true}) {
      const int spot = common_spot(group_);
      Ranks all(
          count, in_place,
          [&](int rank, auto& from, auto& to) { return sum(rank, spot, from, to); }, kRanks);
      for (int rank = 0; rank < kRanks; ++rank) {
        ASSERT_TRUE(all.operations[static_cast<std::size_t>(rank)]->run(stream(rank)));
      }
      synchronise();
      for (int rank = 0; rank < kRanks; ++rank) {
        const auto which = static_cast<std::size_t>(rank);
        const auto& got = in_place ? all.from[which] : all.to[which];
        ASSERT_EQ(got->content(), all.right) << count;
        runtime(rank).release(all.operations[which]);
        // The spot is taken until the operation is collected.
        ASSERT_EQ(group_.peers[which]->free_spots() >> spot & 1U, 0U);
      }
    }
  }
}

// Checks the sum of a type: the first rank contributes `first`, all others `others`.
template <class T>
void check_type(std::vector<Runtime*> runtimes, const Group& group,
                const std::vector<Stream>& streams, weft_gpu_type type, weft_gpu_op op, T first,
                T others) {
  constexpr std::size_t kWords = 3;
  // The last element must stay unchanged.
  constexpr std::size_t kCount = kWords * sizeof(Number) / sizeof(T) - 1;
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (std::size_t rank = 0; rank < runtimes.size(); ++rank) {
    Numbers words(kWords);
    std::vector<T> elements(kCount + 1, rank == 0 ? first : others);
    std::memcpy(words.data(), elements.data(), sizeof(Number) * kWords);
    buffers.push_back(std::make_unique<Buffer>(words, true));
    ByKernel by_kernel{group.peers[rank], 1, {}};
    by_kernel.call.out = reinterpret_cast<void*>(buffers.back()->address());
    by_kernel.call.in = by_kernel.call.out;
    by_kernel.call.published = by_kernel.call.count = kCount;
    by_kernel.call.type = type, by_kernel.call.op = op;
    Operation* const made = add_by_kernel(runtimes[rank], std::move(by_kernel));
    ASSERT_TRUE(made->run(streams[rank]));
    runtimes[rank]->release(made);
  }
  T right = first;
  for (std::size_t rank = 1; rank < runtimes.size(); ++rank) right = combined(op, right, others);
  for (std::size_t rank = 0; rank < runtimes.size(); ++rank) {
    ASSERT_EQ(cuStreamSynchronize(streams[rank]), kSuccess);
    const Numbers words = buffers[rank]->content();
    std::vector<T> elements(kCount + 1, right), found(kCount + 1);
    elements[kCount] = rank == 0 ? first : others;
    std::memcpy(found.data(), words.data(), sizeof(Number) * kWords);
    EXPECT_EQ(std::memcmp(found.data(), elements.data(), sizeof(Number) * kWords), 0)
        << "type " << type << ", op " << op;
  }
}

TEST_F(OneKernelTest, EachTypeHasItsKernel) {
  meet();
  const auto check = [&]<class T>(weft_gpu_type type, weft_gpu_op op, T first, T others) {
    check_type(pointers(), group_, streams_, type, op, first, others);
  };
  check(WEFT_GPU_INT8, WEFT_GPU_SUM, std::int8_t(100), std::int8_t(20));
  check(WEFT_GPU_INT16, WEFT_GPU_PROD, std::int16_t(-3), std::int16_t(11));
  check(WEFT_GPU_INT32, WEFT_GPU_MIN, std::int32_t(4), std::int32_t(-9));
  check(WEFT_GPU_INT64, WEFT_GPU_MAX, std::int64_t(4), std::int64_t(-9));
  check(WEFT_GPU_UINT8, WEFT_GPU_BXOR, std::uint8_t(5), std::uint8_t(3));
  check(WEFT_GPU_UINT16, WEFT_GPU_BOR, std::uint16_t(5), std::uint16_t(3));
  check(WEFT_GPU_UINT32, WEFT_GPU_LAND, 5U, 3U);
  check(WEFT_GPU_UINT64, WEFT_GPU_BAND, std::uint64_t(5), std::uint64_t(3));
  check(WEFT_GPU_HALF, WEFT_GPU_SUM, Half::of(2048), Half::of(1));
  check(WEFT_GPU_BFLOAT16, WEFT_GPU_SUM, Bfloat16::of(256), Bfloat16::of(3));
  check(WEFT_GPU_FLOAT, WEFT_GPU_SUM, 1e8F, 3.0F);
  check(WEFT_GPU_DOUBLE, WEFT_GPU_SUM, 0.5, 0.25);
}

// Moves bytes at any address: in an allgather most blocks do not begin at an aligned address.
TEST_F(OneKernelTest, GathersAndBroadcastsBytes) {
  meet();
  using What = OneKernelCall::What;
  for (const std::size_t bytes : {1, 15, 16, 17, 1000, 100003}) {
    for (const int root : {-1, 0, 2}) {
      const int spot = common_spot(group_);
      const auto ranks = static_cast<std::size_t>(kRanks);
      const std::size_t words = bytes * ranks / sizeof(Number) + 1;
      std::vector<std::unique_ptr<Buffer>> from, to;
      std::vector<std::uint8_t> right(words * sizeof(Number));
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        Numbers content(words);
        auto* const mine = reinterpret_cast<std::uint8_t*>(content.data());
        for (std::size_t i = 0; i < bytes; ++i) {
          mine[i] = static_cast<std::uint8_t>(i * 7 + rank * 31 + 1);
          if (root < 0) right[rank * bytes + i] = mine[i];
          if (root == static_cast<int>(rank)) right[i] = mine[i];
        }
        from.push_back(std::make_unique<Buffer>(content, true));
        to.push_back(std::make_unique<Buffer>(Numbers(words), true));
        ByKernel by_kernel{group_.peers[rank], spot, {}};
        by_kernel.call.what = root < 0 ? What::gather : What::broadcast;
        by_kernel.call.in = reinterpret_cast<const void*>(from.back()->address());
        by_kernel.call.out = reinterpret_cast<void*>(to.back()->address());
        by_kernel.call.published = by_kernel.call.count = bytes;
        by_kernel.call.root = root;
        by_kernel.form = form_of(by_kernel.call);
        Runtime& mine_too = runtime(static_cast<int>(rank));
        Operation* const made = add_by_kernel(&mine_too, std::move(by_kernel));
        for (int i = 0; i < 3; ++i) ASSERT_TRUE(made->run(stream(static_cast<int>(rank))));
        mine_too.release(made);
      }
      synchronise();
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        if (static_cast<int>(rank) == root) continue;  // the root sends the buffer that it has
        const Numbers found = to[rank]->content();
        ASSERT_EQ(std::memcmp(found.data(), right.data(), right.size()), 0)
            << bytes << " bytes, root " << root;
      }
    }
  }
}

TEST_F(OneKernelTest, RanksStartTheirsInAnyOrder) {
  meet();
  std::vector<Ranks> both;
  for (int spot = 0; spot < 2; ++spot) {
    both.emplace_back(
        40, false, [&](int rank, auto& from, auto& to) { return sum(rank, spot, from, to); },
        kRanks);
  }
  for (int round = 0; round < 50; ++round) {
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto which = static_cast<std::size_t>(rank);
      for (int i = 0; i < 2; ++i) {
        const auto one = static_cast<std::size_t>((i + rank) % 2);
        ASSERT_TRUE(both[one].operations[which]->start(stream(rank)));
      }
      for (int i = 0; i < 2; ++i) {
        const auto one = static_cast<std::size_t>((i + rank + round) % 2);
        ASSERT_TRUE(both[one].operations[which]->wait(stream(rank)));
      }
    }
  }
  for (const Ranks& all : both) expect_right(all);
}

TEST_F(OneKernelTest, AGraphIsLaunchedTwoThousandTimes) {
  meet();
  Ranks all(10, true, sums(), kRanks);
  std::vector<void*> graphs;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    const Stream mine = stream(static_cast<int>(rank));
    ASSERT_EQ(cuStreamBeginCapture_v2(mine, 0), kSuccess);
    // Each launch adds 1 to the contribution of rank 0. The other ranks contribute 0.
    enqueue_affine(*all.from[rank], rank == 0 ? 1 : 0, rank == 0 ? 1 : 0, mine);
    ASSERT_TRUE(all.operations[rank]->run(mine));
    void *graph = nullptr, *exec = nullptr;
    ASSERT_EQ(cuStreamEndCapture(mine, &graph), kSuccess);
    ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), kSuccess);
    cuGraphDestroy(graph);
    graphs.push_back(exec);
    // The graph keeps the operation alive.
    runtime(static_cast<int>(rank)).release(all.operations[rank]);
  }
  constexpr int kLaunches = 2000;
  for (int i = 0; i < kLaunches; ++i) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      ASSERT_EQ(cuGraphLaunch(graphs[rank], stream(static_cast<int>(rank))), kSuccess);
    }
  }
  synchronise();
  Numbers right = filled(0, 10);
  for (Number& one : right) one += kLaunches;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(all.from[rank]->content(), right);
    cuGraphExecDestroy(graphs[rank]);
  }
}

TEST_F(OneKernelTest, SpotsAndRegionsAreUsedAgain) {
  for (auto& one : runtimes_) ASSERT_TRUE(one->context());
  const auto round = [&] {
    for (auto& one : runtimes_) one->collect();
    meet();
    for (int i = 0; i < 3 * kSpots; ++i) {
      const int spot = common_spot(group_);
      ASSERT_GE(spot, 0);
      Ranks all(
          7, false, [&](int rank, auto& from, auto& to) { return sum(rank, spot, from, to); },
          kRanks);
      for (int rank = 0; rank < kRanks; ++rank) {
        ASSERT_TRUE(all.operations[static_cast<std::size_t>(rank)]->run(stream(rank)));
      }
      expect_right(all);
    }
    group_ = {};
  };
  round();
  round();
  const int before = standin_allocated();
  for (int i = 0; i < 5; ++i) round();
  EXPECT_LE(standin_allocated(), before);
}

// ---- Cases in which one kernel cannot be used ------------------------------------

TEST_F(OneKernelTest, OneRankWithoutSharedMemoryIsNamedToAll) {
  int allocated = 0;
  for (const char* call :
       {"cuMemAlloc", "cuIpcGetMemHandle", "cuCtxGetDevice", "cuDeviceGetUuid"}) {
    const Group group = meet_all(pointers(), {}, [&](int rank) {
      if (rank == 1) standin_fail(call, 1, standin::kInvalidHandle);
    });
    EXPECT_EQ(group.why_not.rfind(std::string("rank 1: ") + call, 0), 0U) << group.why_not;
    EXPECT_TRUE(group.peers.empty());
    standin_forget_errors();
    if (std::string(call) == "cuIpcGetMemHandle") allocated = standin_allocated();
  }
  EXPECT_EQ(standin_allocated(), allocated);  // freed regions are used again
  EXPECT_EQ(meet_all(pointers(), {}).why_not, "");
}

TEST_F(OneKernelTest, WhatCannotBeMappedIsSaid) {
  standin_fail("cuIpcOpenMemHandle", 4, standin::kInvalidValue);  // the second call of rank 1
  EXPECT_EQ(meet_all(pointers(), {}).why_not,
            "rank 1: cuIpcOpenMemHandle: CUDA_ERROR_INVALID_VALUE");
  EXPECT_EQ(meet_all(pointers(), {}).why_not, "");
}

TEST_F(OneKernelTest, KernelsThatTakeTurnsAreRefusedUnlessTheUserSaysSo) {
  standin_set_attribute(kDeviceIsShared, 0);
  EXPECT_NE(meet_all(pointers(), {}).why_not.find("without MPS"), std::string::npos);
  EXPECT_EQ(meet_all(pointers(), {OneKernel::on, Notify::kernel}).why_not, "");
  standin_set_attribute(kDeviceIsShared, 1);
  EXPECT_EQ(meet_all(pointers(), {}).why_not, "");
  EXPECT_EQ(meet_all(pointers(), {OneKernel::off, Notify::kernel}).why_not,
            "rank 0: WEFT_GPU_ONE_KERNEL is off");
  EXPECT_EQ(meet_all({&runtime(0)}, {}).why_not, "");  // a single rank waits for nobody
}

TEST_F(OneKernelTest, AnOlderDriverIsJudgedByTheDaemon) {
  const auto directory =
      std::filesystem::temp_directory_path() / ("weft-one-kernel-" + std::to_string(::getpid()));
  std::filesystem::create_directory(directory);
  setenv("CUDA_MPS_PIPE_DIRECTORY", directory.c_str(), 1);
  standin_set_attribute(kDeviceIsShared, -1);
  EXPECT_NE(meet_all(pointers(), {}).why_not.find("without MPS"), std::string::npos);
  std::ofstream(directory / "control") << "";
  EXPECT_EQ(meet_all(pointers(), {}).why_not, "");
  unsetenv("CUDA_MPS_PIPE_DIRECTORY");
  std::filesystem::remove_all(directory);
}

TEST(Options, AreReadFromTheEnvironment) {
  const auto said = [](const char* variable, const char* value) {
    setenv(variable, value, 1);
    const auto found = options_of_environment();
    unsetenv(variable);
    return found ? "" : found.error().message;
  };
  EXPECT_EQ(options_of_environment()->one_kernel, OneKernel::automatic);
  EXPECT_EQ(options_of_environment()->notify, Notify::kernel);
  EXPECT_EQ(said("WEFT_GPU_ONE_KERNEL", "on"), "");
  EXPECT_EQ(said("WEFT_GPU_ONE_KERNEL", "yes"), "WEFT_GPU_ONE_KERNEL is auto, on or off");
  EXPECT_EQ(said("WEFT_GPU_ONE_KERNEL_BYTES", "1MiB"),
            "WEFT_GPU_ONE_KERNEL_BYTES is a number of bytes");
  EXPECT_EQ(said("WEFT_INIT_BUDGET", "500us"), "");
  EXPECT_NE(said("WEFT_INIT_BUDGET", "soon").find("WEFT_INIT_BUDGET"), std::string::npos);
  EXPECT_EQ(said("WEFT_GPU_NOTIFY", "stream"), "");
  EXPECT_EQ(said("WEFT_GPU_NOTIFY", "1"), "WEFT_GPU_NOTIFY is kernel, stream or auto");
}

// ---- Cases in which a rank does not take part ------------------------------------

TEST_F(OneKernelTest, AWaitingKernelEndsWhenItsHostGivesUpAndTheOthersAreTold) {
  meet();
  Ranks all(5000, false, sums(), kRanks);
  ASSERT_TRUE(all.operations[0]->run(stream(0)));
  ASSERT_TRUE(all.operations[1]->run(stream(1)));  // rank 2 does not start
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(runtime(0).agent().stop(), 1);
  EXPECT_EQ(cuStreamSynchronize(stream(0)), kSuccess);
  EXPECT_EQ(message(all.operations[0]->run(stream(0))), "MPI has been finalised");
  EXPECT_EQ(cuStreamSynchronize(stream(1)), kSuccess);
  EXPECT_NE(message(all.operations[1]->run(stream(1))).find("was given up"), std::string::npos);
  // The rank that starts late does not wait for the others.
  ASSERT_TRUE(all.operations[2]->run(stream(2)));
  EXPECT_EQ(cuStreamSynchronize(stream(2)), kSuccess);
  EXPECT_NE(message(all.operations[2]->wait(stream(2))).find("was given up"), std::string::npos);
  release(all);
}

TEST_F(OneKernelTest, ARankThatEndsWithoutAKernelLetsTheOthersGoOn) {
  meet();
  Ranks all(5000, false, sums(), kRanks);
  ASSERT_TRUE(all.operations[0]->run(stream(0)));
  ASSERT_TRUE(all.operations[1]->run(stream(1)));
  EXPECT_EQ(runtime(2).agent().stop(), 0);  // the rank has launched nothing
  synchronise();
  expect_given_up(all);
}

TEST_F(OneKernelTest, ARankThatCannotLaunchLetsTheOthersGoOn) {
  meet();
  Ranks all(5000, false, sums(), kRanks);
  standin_fail("cuLaunchKernel", 1, standin::kOutOfMemory);
  EXPECT_FALSE(all.operations[1]->run(stream(1)));
  ASSERT_TRUE(all.operations[0]->run(stream(0)));
  ASSERT_TRUE(all.operations[2]->run(stream(2)));
  synchronise();
  expect_given_up(all);
}

// The last rank ends after the other ranks have got its contribution.
TEST_F(OneKernelTest, ARankThatEndsBehindItsPartSpoilsNothing) {
  meet();
  Ranks all(5000, false, sums(), kRanks);
  ASSERT_TRUE(all.operations[0]->run(stream(0)));
  for (int rank = 1; rank < kRanks; ++rank) {
    ASSERT_TRUE(all.operations[static_cast<std::size_t>(rank)]->start(stream(rank)));
  }
  ASSERT_EQ(cuStreamSynchronize(stream(0)), kSuccess);
  EXPECT_EQ(runtime(0).agent().stop(), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // time in which the others are told
  for (int rank = 1; rank < kRanks; ++rank) {
    ASSERT_TRUE(all.operations[static_cast<std::size_t>(rank)]->wait(stream(rank)));
  }
  expect_right(all);
}

TEST_F(OneKernelTest, ASpotThatWasGivenUpIsNotUsedAgain) {
  meet();
  Ranks all(3, false, sums(), kRanks);
  ASSERT_TRUE(all.operations[0]->start(stream(0)));
  ASSERT_TRUE(all.operations[0]->start(stream(0)));  // this start is not waited for
  ASSERT_EQ(cuStreamSynchronize(stream(0)), kSuccess);
  EXPECT_NE(message(all.operations[0]->wait(stream(0))).find("before it had waited"),
            std::string::npos);
  for (int rank = 1; rank < kRanks; ++rank) {
    ASSERT_TRUE(all.operations[static_cast<std::size_t>(rank)]->run(stream(rank)));
  }
  synchronise();  // all ranks have been told
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto which = static_cast<std::size_t>(rank);
    runtime(rank).release(all.operations[which]);
    Buffer other(Numbers(1), true);
    runtime(rank).release(sum(rank, 1, other, other));  // frees released operations
    EXPECT_EQ(group_.peers[which]->free_spots() & 1U, 0U);
  }
  EXPECT_NE(common_spot(group_), 0);
}

TEST_F(OneKernelTest, ASpotThatWasNotWaitedForIsNotUsedAgain) {
  meet();
  const auto on_all = [&](int spot) {
    return Ranks(
        3, false, [&](int rank, auto& from, auto& to) { return sum(rank, spot, from, to); },
        kRanks);
  };
  Ranks first = on_all(0), second = on_all(1);
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto which = static_cast<std::size_t>(rank);
    ASSERT_TRUE(first.operations[which]->start(stream(rank)));
    if (rank != 0) {
      ASSERT_TRUE(first.operations[which]->wait(stream(rank)));
    }
    ASSERT_TRUE(second.operations[which]->start(stream(rank)));
    ASSERT_TRUE(second.operations[which]->wait(stream(rank)));
  }
  synchronise();
  for (int rank = 0; rank < kRanks; ++rank) {
    runtime(rank).release(first.operations[static_cast<std::size_t>(rank)]);
    runtime(rank).release(second.operations[static_cast<std::size_t>(rank)]);
    runtime(rank).collect();
  }
  ASSERT_EQ(common_spot(group_), 1);
  Ranks all = on_all(1);
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_TRUE(all.operations[static_cast<std::size_t>(rank)]->run(stream(rank)));
  }
  expect_right(all);
}

TEST_F(OneKernelTest, AFailedLaunchIsSaidByItsCall) {
  meet();
  Ranks all(3, false, sums(), kRanks);
  const char* const calls[] = {"cuLaunchKernel", "cuEventRecord", "cuStreamGetCaptureInfo"};
  for (int rank = 0; rank < kRanks; ++rank) {
    Operation* const one = all.operations[static_cast<std::size_t>(rank)];
    standin_fail(calls[rank], 1, standin::kOutOfMemory);
    const std::string said = message(one->run(stream(rank)));
    EXPECT_EQ(said, std::string(calls[rank]) + ": CUDA_ERROR_OUT_OF_MEMORY");
    EXPECT_EQ(message(one->wait(stream(rank))), said);
  }
  synchronise();  // the kernel of the second collective was launched and waited
  release(all);
}

TEST_F(OneKernelTest, AKernelOfTheUsersCannotStartIt) {
  meet();
  Buffer buffer(Numbers(4), true);
  Operation* const one = sum(0, 0, buffer, buffer);
  EXPECT_NE(
      message(one->flags() ? Result<bool>(true) : one->flags().error()).find("a kernel of Weft's"),
      std::string::npos);
  runtime(0).release(one);
}

}  // namespace
}  // namespace weft::gpu
