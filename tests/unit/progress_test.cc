// The executors over a transport that completes when the test says so: who advances which
// operation, that none is lost between threads, and that nothing runs without one.
#include "engine/progress.h"

#include <gtest/gtest.h>

#include <array>
#include <cfenv>
#include <chrono>
#include <thread>

#include "engine/worker.h"

namespace weft {
namespace {

// Completes one round for each permit in `open`.
class GatedTransport final : public Transport {
 public:
  Result<bool> start(const Step&) override { return true; }
  Result<bool> test() override {
    tests.fetch_add(1);
    rounding = std::fegetround();
    if (fail) return Error{"", 7};
    int permits = open.load();
    while (permits > 0)
      if (open.compare_exchange_weak(permits, permits - 1)) return true;
    return false;
  }

  std::atomic<int> open{0};
  std::atomic<int> tests{0};
  std::atomic<int> rounding{-1};
  std::atomic<bool> fail{false};
};

std::shared_ptr<Schedule> two_rounds(std::uint32_t left_from = Schedule::kNever) {
  auto schedule = std::make_shared<Schedule>();
  schedule->left_from_round = left_from;
  schedule->steps.resize(2);
  schedule->round_ends = {1, 2};
  schedule->sends_after_first_round = true;
  return schedule;
}

class TestOperation final : public Operation {
 public:
  explicit TestOperation(GatedTransport& transport, std::uint32_t left_from = Schedule::kNever)
      : Operation(two_rounds(left_from), transport) {}
  TestOperation(GatedTransport& transport, std::shared_ptr<const Schedule> schedule)
      : Operation(std::move(schedule), transport) {}
  void taken_over() override { times_taken_over.fetch_add(1); }

  std::atomic<int> times_finished{0};
  std::atomic<int> times_taken_over{0};
  std::atomic<int> code{0};

 protected:
  void finished(const Error* error) override {
    times_finished.fetch_add(1);
    if (error) code = error->mpi_code;
  }
};

class Activities final : public Observer {
 public:
  void thread_started(const char*, int) override { threads.fetch_add(1); }
  void activity(Activity what) override {
    last = what;
    if (what == Activity::asleep) sleeps.fetch_add(1);
  }
  void keep_library_going() override { looks.fetch_add(1); }
  std::atomic<int> looks{0}, sleeps{0};
  std::atomic<int> threads{0};
  std::atomic<Activity> last{Activity::polling};
};

template <class Condition>
bool within_seconds(int seconds, Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (!condition())
    if (std::chrono::steady_clock::now() > end)
      return false;
    else
      std::this_thread::yield();
  return true;
}

constexpr BackOff kYield{BackOff::Kind::yield};
const auto kNeverSleep = [] { FAIL() << "nothing under way"; };

TEST(Progress, CallersAdvanceWhatNeedsNoThread) {
  Activities observer;
  Progress progress(kYield, ThreadMay::do_all, observer);
  GatedTransport transport;
  auto operation = std::make_shared<TestOperation>(transport);
  progress.submit(operation, false);
  EXPECT_EQ(progress.under_way(), 1);
  progress.poll();
  EXPECT_FALSE(operation->done());
  transport.open = 2;
  progress.poll();
  EXPECT_TRUE(operation->done());
  EXPECT_EQ(progress.under_way(), 0);
  EXPECT_EQ(operation->times_finished, 1);
  EXPECT_EQ(observer.threads, 0);
}

TEST(Progress, ThreadAdvancesWhileTheCallerComputesAndThenSleeps) {
  Activities observer;
  Progress progress(kYield, ThreadMay::do_all, observer);
  GatedTransport transport;
  auto operation = std::make_shared<TestOperation>(transport);
  progress.submit(operation, true);
  transport.open = 2;
  ASSERT_TRUE(within_seconds(20, [&] { return operation->done(); }));
  ASSERT_TRUE(within_seconds(20, [&] { return observer.last == Activity::asleep; }));
  const int tests = transport.tests;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(transport.tests, tests);
  EXPECT_EQ(observer.threads, 1);
}

TEST(Progress, WhatIsOfferedIsTakenOverOnceOrWithdrawn) {
  Activities observer;
  Progress progress(kYield, ThreadMay::nothing, observer);
  GatedTransport transport;
  transport.open = 4;
  auto taken = std::make_shared<TestOperation>(transport);
  auto kept = std::make_shared<TestOperation>(transport);
  progress.offer(taken);
  progress.offer(kept);
  EXPECT_EQ(progress.under_way(), 2);
  EXPECT_TRUE(progress.withdraw(*kept));
  EXPECT_FALSE(progress.withdraw(*kept));
  EXPECT_EQ(progress.under_way(), 1);
  progress.poll();
  EXPECT_TRUE(taken->done());
  EXPECT_EQ(taken->times_taken_over, 1);
  EXPECT_FALSE(progress.withdraw(*taken));
  EXPECT_FALSE(kept->done());
  EXPECT_EQ(kept->times_taken_over, 0);
  EXPECT_EQ(progress.under_way(), 0);
}

TEST(Progress, ThreadTakesOverWhatIsOfferedWhileTheCallerBlocks) {
  Activities observer;
  Progress progress(kYield, ThreadMay::do_all, observer);
  GatedTransport transport;
  transport.open = 2;
  auto operation = std::make_shared<TestOperation>(transport);
  progress.offer(operation);
  ASSERT_TRUE(progress.caller_blocks());
  ASSERT_TRUE(within_seconds(20, [&] { return operation->done(); }));
  progress.caller_returns();
  EXPECT_EQ(operation->times_taken_over, 1);
}

TEST(Progress, ThreadThatMayUseMemoryLeavesTheEndToACaller) {
  Activities observer;
  Progress progress(kYield, ThreadMay::use_memory, observer);
  GatedTransport transport;
  auto operation = std::make_shared<TestOperation>(transport);
  operation->set_in_memory(true);
  progress.submit(operation, true);
  transport.open = 2;
  ASSERT_TRUE(within_seconds(20, [&] { return operation->round() == 2; }));
  ASSERT_TRUE(within_seconds(20, [&] { return observer.last == Activity::asleep; }));
  EXPECT_FALSE(operation->done());
  EXPECT_EQ(operation->times_finished, 0);
  EXPECT_EQ(progress.under_way(), 1);
  progress.poll();
  EXPECT_TRUE(operation->done());
  EXPECT_EQ(operation->times_finished, 1);
  EXPECT_EQ(progress.under_way(), 0);
}

TEST(Progress, ThreadThatMayUseMemoryTouchesNothingElse) {
  Activities observer;
  Progress progress(kYield, ThreadMay::use_memory, observer);
  GatedTransport transport, others;
  auto by_callers = std::make_shared<TestOperation>(transport);
  auto in_memory = std::make_shared<TestOperation>(others);
  in_memory->set_in_memory(true);
  progress.submit(by_callers, false);
  others.open = 2;
  progress.submit(in_memory, true);
  ASSERT_TRUE(within_seconds(20, [&] { return in_memory->round() == 2; }));
  EXPECT_EQ(transport.tests, 0);
  transport.open = 2;
  progress.drive_until([&] { return by_callers->done() && in_memory->done(); }, kNeverSleep);
}

TEST(Progress, ThreadIsWokenAgainAfterSleep) {
  Activities observer;
  Progress progress(kYield, ThreadMay::do_all, observer);
  for (int i = 0; i < 200; ++i) {
    GatedTransport transport;
    transport.open = 2;
    auto operation = std::make_shared<TestOperation>(transport);
    progress.submit(operation, true);
    ASSERT_TRUE(within_seconds(20, [&] { return operation->done() && progress.under_way() == 0; }));
  }
  EXPECT_EQ(observer.threads, 1);
}

TEST(Progress, WaitingCallerDrivesWithoutAThread) {
  Activities observer;
  Progress progress(kYield, ThreadMay::nothing, observer);
  GatedTransport transport;
  transport.open = 2;
  auto operation = std::make_shared<TestOperation>(transport);
  progress.submit(operation, true);
  progress.drive_until([&] { return operation->done(); }, kNeverSleep);
  EXPECT_TRUE(operation->done());
  EXPECT_EQ(observer.threads, 0);
}

TEST(Progress, AQuietThreadGetsEverythingDoneAndEndsWhileItSleeps) {
  Activities observer;
  Progress progress({BackOff::Kind::quiet}, ThreadMay::do_all, observer);
  GatedTransport transport;
  auto operation = std::make_shared<TestOperation>(transport);
  progress.submit(operation, true);
  ASSERT_TRUE(within_seconds(20, [&] { return observer.last == Activity::asleep; }));
  transport.open = 2;
  EXPECT_TRUE(within_seconds(20, [&] { return operation->done(); }));
}

// The schedules are one in the node's memory, and one whose round is a collective of the library.
TEST(Progress, AQuietThreadStaysAwakeForWhatHidesItsRounds) {
  auto in_memory = two_rounds(), of_library = two_rounds();
  in_memory->node_bytes = 64;
  of_library->steps = {{.kind = StepKind::library_nonblocking}};
  of_library->round_ends = {1};
  for (const auto& schedule : {in_memory, of_library}) {
    Activities observer;
    GatedTransport transport;
    Progress progress({BackOff::Kind::quiet}, ThreadMay::do_all, observer);
    auto operation = std::make_shared<TestOperation>(transport, schedule);
    progress.submit(operation, true);
    ASSERT_TRUE(within_seconds(20, [&] { return transport.tests > 1; }));
    const int sleeps = observer.sleeps;
    ASSERT_TRUE(within_seconds(20, [&] { return transport.tests > 10'000; }));
    EXPECT_EQ(observer.sleeps, sleeps);
    transport.open = 2;
    EXPECT_TRUE(within_seconds(20, [&] { return operation->done(); }));
  }
}

TEST(Progress, AQuietThreadIsCalledForWhatIsSubmittedWhileItDozes) {
  Activities observer;
  GatedTransport transport;
  const auto memory = std::make_shared<MailboxMemory>();
  Progress progress({BackOff::Kind::quiet}, ThreadMay::do_all, observer);
  progress.use(Mailbox(memory, memory.get(), memory.get()));  // its command word wakes the thread
  progress.submit(std::make_shared<TestOperation>(transport), true);
  ASSERT_TRUE(within_seconds(20, [&] { return transport.tests > 1; }));
  const auto calls = memory->wake.load();
  EXPECT_TRUE(within_seconds(20, [&] {
    if (observer.last == Activity::asleep)
      progress.submit(std::make_shared<TestOperation>(transport), true);
    return memory->wake.load() != calls;
  }));
}

TEST(Progress, BlockedCallerHandsOverToTheThread) {
  Activities observer;
  Progress progress(kYield, ThreadMay::do_all, observer);
  GatedTransport transport;
  auto operation = std::make_shared<TestOperation>(transport);
  progress.submit(operation, false);
  ASSERT_TRUE(progress.caller_blocks());
  transport.open = 2;
  EXPECT_TRUE(within_seconds(20, [&] { return operation->done(); }));
  progress.caller_returns();
}

TEST(Progress, BlockingCallWithNothingUnderWayStartsNoThread) {
  Activities observer;
  Progress progress(kYield, ThreadMay::do_all, observer);
  EXPECT_FALSE(progress.caller_blocks());
  EXPECT_EQ(observer.threads, 0);
}

TEST(Progress, ThreadStopsBeforeTheCallersPart) {
  Activities observer;
  Progress progress(kYield, ThreadMay::do_all, observer);
  GatedTransport transport;
  transport.open = 2;
  auto operation = std::make_shared<TestOperation>(transport, 1);
  progress.submit(operation, true);
  ASSERT_TRUE(within_seconds(20, [&] { return operation->is_at_callers_part(); }));
  ASSERT_TRUE(within_seconds(20, [&] { return observer.last == Activity::asleep; }));
  EXPECT_FALSE(operation->done());
  EXPECT_EQ(transport.open, 1);
  progress.drive_until([&] { return operation->done(); }, kNeverSleep);
  EXPECT_EQ(operation->times_finished, 1);
  EXPECT_EQ(progress.under_way(), 0);
}

TEST(Progress, ThreadGoesOnWithTheCallersPartWhileTheCallerBlocksElsewhere) {
  Activities observer;
  Progress progress(kYield, ThreadMay::do_all, observer);
  GatedTransport transport;
  transport.open = 2;
  auto operation = std::make_shared<TestOperation>(transport, 1);
  progress.submit(operation, true);
  ASSERT_TRUE(within_seconds(20, [&] { return observer.last == Activity::asleep; }));
  ASSERT_TRUE(progress.caller_blocks());
  EXPECT_TRUE(within_seconds(20, [&] { return operation->done(); }));
  progress.caller_returns();
}

// While its caller is blocked in the library, only the thread can advance the operation.
TEST(Progress, ThreadTouchesWhatIsLeftToCallersOnlyWhileOneIsBlocked) {
  Activities observer;
  Progress progress(kYield, ThreadMay::do_all, observer);
  GatedTransport transport, of_thread;
  transport.open = 2;
  auto operation = std::make_shared<TestOperation>(transport);
  operation->leave_to_callers();
  progress.submit(operation, false);
  auto other = std::make_shared<TestOperation>(of_thread);
  progress.submit(other, true);
  ASSERT_TRUE(within_seconds(20, [&] { return of_thread.tests > 3; }));
  EXPECT_EQ(transport.tests, 0);
  ASSERT_TRUE(progress.caller_blocks());
  EXPECT_TRUE(within_seconds(20, [&] { return operation->done(); }));
  progress.caller_returns();
  of_thread.open = 2;
  EXPECT_TRUE(within_seconds(20, [&] { return other->done(); }));
}

TEST(Progress, ThreadTakesOverWhatIsSubmittedWhileAnotherCallerBlocks) {
  Activities observer;
  Progress progress(kYield, ThreadMay::do_all, observer);
  progress.expect_several_callers();
  ASSERT_TRUE(progress.caller_blocks());
  GatedTransport transport;
  transport.open = 2;
  auto operation = std::make_shared<TestOperation>(transport);
  progress.submit(operation, false);
  EXPECT_TRUE(within_seconds(20, [&] { return operation->done(); }));
  progress.caller_returns();
}

TEST(Progress, ThreadRoundsAsTheOneWhoSubmits) {
  Activities observer;
  Progress progress(kYield, ThreadMay::do_all, observer);
  for (const int mode : {FE_UPWARD, FE_TONEAREST, FE_DOWNWARD}) {
    std::fesetround(mode);
    GatedTransport transport;
    transport.open = 2;
    auto operation = std::make_shared<TestOperation>(transport);
    progress.submit(operation, true);
    std::fesetround(FE_TONEAREST);
    EXPECT_TRUE(within_seconds(20, [&] { return operation->done() && progress.under_way() == 0; }));
    EXPECT_EQ(transport.rounding, mode);
  }
}

TEST(Progress, ThreadLooksAfterTransfersAsLongAsSomeAreLeftToIt) {
  Activities observer;
  Progress progress(kYield, ThreadMay::do_all, observer);
  ASSERT_TRUE(progress.start());
  ASSERT_TRUE(within_seconds(20, [&] { return observer.last == Activity::asleep; }));
  for (int i = 0; i < 3; ++i) {
    const int before = observer.looks;
    progress.leave_transfers(2);
    progress.leave_transfers(-1);
    ASSERT_TRUE(within_seconds(20, [&] { return observer.looks > before + 3; }));
    progress.leave_transfers(-1);
    // A look that is under way ends before the thread turns to this operation.
    GatedTransport transport;
    transport.open = 2;
    auto operation = std::make_shared<TestOperation>(transport);
    progress.submit(operation, true);
    ASSERT_TRUE(within_seconds(20, [&] { return operation->done(); }));
    const int after = observer.looks;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(observer.looks, after);
  }
}

// A library that moves 8 KiB in each call while there is something to move.
class MovingLibrary final : public Observer {
 public:
  void thread_started(const char*, int) override {}
  void activity(Activity what) override {
    if (what == Activity::asleep && left.load() > 0) looks.fetch_add(1);
  }
  void keep_library_going() override {
    calls.fetch_add(1);
    if (left.load() == 0) return;
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
    while (std::chrono::steady_clock::now() < until) continue;
    left.fetch_sub(1);
  }
  std::atomic<int> calls{0}, looks{0}, left{0};
};

TEST(Progress, ALongTransferTakesAFewLooks) {
  MovingLibrary library;
  Progress progress(kYield, ThreadMay::do_all, library);
  ASSERT_TRUE(progress.start());
  progress.leave_transfers(1);
  ASSERT_TRUE(within_seconds(20, [&] { return library.calls > 20; }));  // these calls move nothing
  constexpr int kCalls = 2 * 1024 / 8;
  library.left = kCalls;
  ASSERT_TRUE(within_seconds(20, [&] { return library.left == 0; }));
  EXPECT_LE(library.looks, 2 + kCalls / TransferLook::kMostCalls);
  progress.leave_transfers(-1);
}

TEST(Progress, ThreadLooksAfterTransfersBesideAnOperation) {
  Activities observer;
  Progress progress(kYield, ThreadMay::do_all, observer);
  GatedTransport transport;
  auto operation = std::make_shared<TestOperation>(transport);
  progress.submit(operation, true);
  progress.leave_transfers(1);
  EXPECT_TRUE(within_seconds(20, [&] { return observer.looks > 3; }));
  transport.open = 2;
  EXPECT_TRUE(within_seconds(20, [&] { return operation->done(); }));
  progress.leave_transfers(-1);
}

TEST(Progress, AThreadThatDozesForTransfersIsWokenByAnOperation) {
  Activities observer;
  Progress progress(kYield, ThreadMay::do_all, observer);
  progress.leave_transfers(1);
  for (int i = 0; i < 200; ++i) {
    GatedTransport transport;
    transport.open = 2;
    auto operation = std::make_shared<TestOperation>(transport);
    progress.submit(operation, true);
    ASSERT_TRUE(within_seconds(20, [&] { return operation->done() && progress.under_way() == 0; }));
  }
  progress.leave_transfers(-1);
}

TEST(Progress, ErrorEndsTheOperationOnce) {
  Activities observer;
  Progress progress(kYield, ThreadMay::nothing, observer);
  GatedTransport transport;
  transport.fail = true;
  auto operation = std::make_shared<TestOperation>(transport);
  progress.submit(operation, false);
  progress.poll();
  progress.poll();
  EXPECT_TRUE(operation->done());
  EXPECT_EQ(operation->times_finished, 1);
  EXPECT_EQ(operation->code, 7);
  EXPECT_EQ(progress.under_way(), 0);
}

TEST(Progress, ManyCallersAndTheThreadFinishEachOperationOnce) {
  Activities observer;
  Progress progress(kYield, ThreadMay::do_all, observer);
  constexpr int kCallers = 4, kEach = 200;
  std::atomic<int> finished{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c)
    callers.emplace_back([&, c] {
      for (int i = 0; i < kEach; ++i) {
        GatedTransport transport;
        transport.open = 2;
        auto operation = std::make_shared<TestOperation>(transport);
        progress.submit(operation, (c + i) % 2 == 0);
        progress.drive_until([&] { return operation->done(); }, [] { std::this_thread::yield(); });
        finished.fetch_add(operation->times_finished);
        // The transport must outlive the executor's reference to the operation.
        while (operation.use_count() > 1) std::this_thread::yield();
      }
    });
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(finished, kCallers * kEach);
  EXPECT_EQ(progress.under_way(), 0);
}

TEST(Worker, CarriesOutInTheOrderOfIssue) {
  Activities observer;
  GatedTransport first_transport, second_transport;
  second_transport.open = 2;
  auto first = std::make_shared<TestOperation>(first_transport);
  auto second = std::make_shared<TestOperation>(second_transport);
  Worker worker(observer, 0);
  ASSERT_TRUE(worker.start());
  worker.submit(first);
  worker.submit(second);
  ASSERT_TRUE(within_seconds(20, [&] { return first_transport.tests > 3; }));
  EXPECT_FALSE(second->done());
  EXPECT_EQ(second_transport.tests, 0);
  first_transport.open = 2;
  second->wait_done();
  EXPECT_TRUE(first->done());
}

// An operation that is only begun comes after those submitted before it, and before later ones.
TEST(Worker, LetsOthersOnlyBeginInTheirTurn) {
  Activities observer;
  GatedTransport first_transport, begun_transport, last_transport;
  last_transport.open = 2;
  auto first = std::make_shared<TestOperation>(first_transport);
  auto begun = std::make_shared<TestOperation>(begun_transport);
  auto last = std::make_shared<TestOperation>(last_transport);
  std::atomic<Operation*> handed_on{nullptr};
  Worker worker(observer, 0);
  ASSERT_TRUE(worker.start());
  EXPECT_TRUE(worker.is_idle());
  worker.submit(first);
  worker.begin(begun, [&](std::shared_ptr<Operation> one) { handed_on = one.get(); });
  worker.submit(last);
  ASSERT_TRUE(within_seconds(20, [&] { return first_transport.tests > 3; }));
  EXPECT_EQ(begun_transport.tests, 0);
  EXPECT_FALSE(worker.is_idle());
  first_transport.open = 2;
  last->wait_done();
  EXPECT_EQ(handed_on, begun.get());
  EXPECT_EQ(begun_transport.tests, 1);
  EXPECT_FALSE(begun->done());
  EXPECT_TRUE(within_seconds(20, [&] { return worker.is_idle(); }));
}

TEST(Worker, EmptiesItsQueueBeforeItEnds) {
  Activities observer;
  GatedTransport transport;
  transport.open = 20;
  std::vector<std::shared_ptr<TestOperation>> operations;
  {
    Worker worker(observer, 0);
    ASSERT_TRUE(worker.start());
    for (int i = 0; i < 10; ++i) {
      operations.push_back(std::make_shared<TestOperation>(transport));
      worker.submit(operations.back());
    }
  }
  for (auto& operation : operations) EXPECT_TRUE(operation->done());
}

}  // namespace
}  // namespace weft
