// The agent of a core: one thread executes programs of several ranks, in memory of this process and
// of another. The tests check what it returns to the ranks, and what happens when a process ends.
#include "engine/core_agent.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "call_memory.h"
#include "engine/progress.h"
#include "engine/shared_memory_call.h"
#include "simulated_call.h"

namespace weft::test {
namespace {

constexpr int kRanks = 3;

class Nobody final : public Observer {
 public:
  void thread_started(const char*, int) override {}
  void activity(Activity) override {}
};

std::shared_ptr<Segment> shared_memory(std::int64_t bytes) {
  auto made = std::make_shared<Segment>(std::move(*Segment::create(bytes)));
  known_segments().add(made);
  return made;
}

// A call on all ranks. Its buffers and programs lie in this process or in a forked one.
class NodeCall {
 public:
  explicit NodeCall(const Call& call) : memory(call), schedules(build_all(call)) {
    const std::int64_t bytes = schedules[0].node_bytes;
    segment_ = shared_memory(NodeBuffers::bytes(call.size, bytes));
    for (int rank = 0; rank < call.size; ++rank) {
      const Schedule& schedule = schedules[static_cast<std::size_t>(rank)];
      temp_.emplace_back(static_cast<std::size_t>(schedule.temp_bytes));
      node_buffers_.emplace_back(segment_->data(), rank, call.size, bytes);
      turns.push_back(node_buffers_.back().next(Ends::any_time, schedule));
      operands.push_back({{memory.send(rank), memory.recv(rank), temp_.back().data()},
                          find_kernel(Element::float64, Operator::sum),
                          nullptr});
      operands.back().use(turns.back(), schedule);
    }
  }

  Work work(int rank) const {
    const auto i = static_cast<std::size_t>(rank);
    return *work_of(schedules[i], operands[i], turns[i], {false, 0, 0});
  }

  CallMemory memory;
  std::vector<Schedule> schedules;
  std::deque<NodeBufferUse> turns;
  std::deque<Operands> operands;

 private:
  std::shared_ptr<Segment> segment_;
  std::deque<NodeBuffers> node_buffers_;
  std::deque<std::vector<std::byte>> temp_;
};

Call call_of(Kind kind, std::int64_t count) {
  Call call{.size = kRanks, .count = count, .type = &test_types()[1]};
  call.algorithm = find_algorithm(kind, "node-flat");
  return call;
}

// An agent with the thread that serves as it.
class Serving {
 public:
  Serving(std::shared_ptr<void> memory, const std::vector<MailboxMemory*>& mailboxes)
      : agent_(std::move(memory), mailboxes.front(), mailboxes,
               static_cast<int>(mailboxes.size())) {
    progress_.serve(agent_);
    EXPECT_TRUE(progress_.start());
    agent_.wait_until_it_serves();
  }
  void stop() { progress_.stop(); }

 private:
  Nobody nobody_;
  CoreAgent agent_;
  Progress progress_{BackOff{}, ThreadMay::do_all, nobody_};
};

class Core {
 public:
  Core() : memory_(shared_memory(kRanks * static_cast<std::int64_t>(sizeof(MailboxMemory)))) {
    for (int rank = 0; rank < kRanks; ++rank) {
      mailboxes.push_back(reinterpret_cast<MailboxMemory*>(memory_->data()) + rank);
      mailboxes.back()->process = getpid();
      mailboxes.back()->rank = rank;
    }
    for (MailboxMemory* own : mailboxes) ranks.emplace_back(memory_, own, mailboxes.front());
  }

  std::unique_ptr<Serving> agent() { return std::make_unique<Serving>(memory_, mailboxes); }

  std::vector<MailboxMemory*> mailboxes;
  std::deque<Mailbox> ranks;

 private:
  std::shared_ptr<Segment> memory_;
};

// ChildProcess: a process that calls begin() and keeps its result until end() kills the process.
class ChildProcess {
 public:
  template <class Begin>
  explicit ChildProcess(Begin begin) {
    int tell[2];
    if (pipe(tell) != 0) return;
    id_ = fork();
    if (id_ == 0) {
      [[maybe_unused]] const auto kept = begin();
      if (write(tell[1], "b", 1) != 1) _exit(1);
      for (;;) pause();
    }
    char word = 0;
    close(tell[1]);
    has_begun_ = id_ > 0 && read(tell[0], &word, 1) == 1;
    close(tell[0]);
  }
  ~ChildProcess() { end(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  bool has_begun() const { return has_begun_; }
  pid_t id() const { return id_; }
  void end() {
    if (id_ <= 0) return;
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
    id_ = -1;
  }

 private:
  pid_t id_ = -1;
  bool has_begun_ = false;
};

// A rank on a core that it shares with others: it leaves its part of a call to the agent, and its
// application thread waits until the part is complete.
class WaitingRank {
 public:
  WaitingRank(const NodeCall& call, int rank, const Mailbox& mailbox)
      : call_(call),
        rank_(static_cast<std::size_t>(rank)),
        operation_(std::make_shared<Part>(call.schedules[rank_], transport_, call.operands[rank_],
                                          call.turns[rank_])) {
    progress_.use(mailbox);
    progress_.sleep_in_waits();
  }
  ~WaitingRank() {
    if (application_.joinable()) application_.join();
  }

  void begin() {
    const auto work = work_of(operation_->schedule(), call_.operands[rank_], call_.turns[rank_],
                              *operation_->rest());
    ASSERT_TRUE(progress_.leave_to_agent(operation_, *work));
    operation_->mark_waited_on();
    application_ = std::thread(
        [this] { progress_.wait_until([this] { return ends(); }, [] { sched_yield(); }); });
  }
  bool ends() const { return operation_->done() || observer_.has_lost_the_agent; }
  bool is_done() const { return operation_->done(); }
  std::int64_t ended_by_agent() const { return progress_.ended_by_agent(); }

 private:
  class Part final : public Operation {
   public:
    Part(const Schedule& schedule, Transport& transport, const Operands& operands,
         const NodeBufferUse& turn)
        : Operation(std::make_shared<const Schedule>(schedule), transport, &operands, &turn) {}

   private:
    void finished(const Error*) override {}
  };
  class NoTransport final : public Transport {
    Result<bool> start(const Step&) override { return Error{"a program needs no transport"}; }
    Result<bool> test() override { return true; }
  };
  class Loss final : public Observer {
   public:
    void thread_started(const char*, int) override {}
    void activity(Activity) override {}
    void agent_has_ended() override { has_lost_the_agent = true; }
    std::atomic<bool> has_lost_the_agent{false};
  };

  const NodeCall& call_;
  const std::size_t rank_;
  NoTransport transport_;
  Loss observer_;
  std::shared_ptr<Part> operation_;
  Progress progress_{BackOff{}, ThreadMay::do_all, observer_};
  std::thread application_;
};

void wait_until_asleep(const MailboxMemory& mailbox) {
  while (mailbox.waiting.load() == 0) sched_yield();
}

void wait_for(const Mailbox& mailbox, int command) {
  while (mailbox.is_under_way(command)) sched_yield();
}

// Executes the rest of a program on its own rank.
void finish(const NodeCall& call, int rank, const Mailbox::Rest& rest) {
  const auto i = static_cast<std::size_t>(rank);
  ASSERT_FALSE(rest.over);
  Execution execution(call.schedules[i], nullptr, &call.operands[i], &call.turns[i]);
  if (rest.begun) execution.skip(call.schedules[i].program[rest.next].step);
  for (;;) {
    const auto done = execution.advance();
    ASSERT_TRUE(done);
    if (*done) return;
    sched_yield();
  }
}

class CoreAgentOf : public testing::TestWithParam<Kind> {};

TEST_P(CoreAgentOf, CarriesOutTheOrdersOfAllRanks) {
  Core core;
  const auto agent = core.agent();
  for (const std::int64_t count : {1, 1000, 200'000}) {
    NodeCall call(call_of(GetParam(), count));
    ASSERT_FALSE(call.schedules[0].program.empty());
    std::vector<int> commands;
    for (int rank = 0; rank < kRanks; ++rank)
      commands.push_back(core.ranks[static_cast<std::size_t>(rank)].leave(call.work(rank)));
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      ASSERT_NE(commands[rank], Mailbox::kNone);
      wait_for(core.ranks[rank], commands[rank]);
      EXPECT_TRUE(core.ranks[rank].take(commands[rank])->over);
    }
    EXPECT_EQ(call.memory.difference(), "") << count;
  }
}

TEST_P(CoreAgentOf, ReachesBuffersOfAnotherProcess) {
  Core core;
  NodeCall call(call_of(GetParam(), 50'000));
  int tell[2], ask[2];
  ASSERT_EQ(pipe(tell), 0);
  ASSERT_EQ(pipe(ask), 0);
  // The child has copies of all buffers and programs at the same addresses.
  const pid_t child = fork();
  if (child == 0) {
    char word = 0;
    const bool told = write(tell[1], "b", 1) == 1 && read(ask[0], &word, 1) == 1;
    _exit(told && call.memory.difference().empty() ? 0 : 1);
  }
  char word = 0;
  ASSERT_EQ(read(tell[0], &word, 1), 1);
  for (MailboxMemory* mailbox : core.mailboxes) mailbox->process = child;
  const auto agent = core.agent();
  for (int rank = 0; rank < kRanks; ++rank) {
    Mailbox& mailbox = core.ranks[static_cast<std::size_t>(rank)];
    ASSERT_EQ(mailbox.leave(call.work(rank)), 0);
  }
  for (Mailbox& mailbox : core.ranks) {
    wait_for(mailbox, 0);
    EXPECT_TRUE(mailbox.take(0)->over);
  }
  ASSERT_EQ(write(ask[1], "b", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  for (const int end : {tell[0], tell[1], ask[0], ask[1]}) close(end);
}

TEST_P(CoreAgentOf, ARankTakesItsOrderBackAndGoesOn) {
  Core core;
  const auto agent = core.agent();
  NodeCall call(call_of(GetParam(), 200'000));
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank)
    ranks.emplace_back([&, rank] {
      Mailbox& mailbox = core.ranks[static_cast<std::size_t>(rank)];
      const int command = mailbox.leave(call.work(rank));
      for (int i = 0; i < 100 * rank && mailbox.is_under_way(command); ++i) sched_yield();
      const auto rest = mailbox.take(command);
      ASSERT_TRUE(rest);
      if (!rest->over) finish(call, rank, *rest);
    });
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(call.memory.difference(), "");
}

INSTANTIATE_TEST_SUITE_P(Kinds, CoreAgentOf,
                         testing::Values(Kind::allgather, Kind::allreduce, Kind::alltoall,
                                         Kind::bcast, Kind::reduce_scatter_block),
                         [](const auto& kind) { return std::string(kind_name(kind.param)); });

// It does not take its part back, although the agent can complete it only when the others begin.
TEST(CoreAgent, ARankThatSharesItsCoreSleepsUntilItsOrderIsOver) {
  Core core;
  const auto agent = core.agent();
  NodeCall call(call_of(Kind::allgather, 200'000));
  {
    WaitingRank waits(call, 1, core.ranks[1]);
    waits.begin();
    wait_until_asleep(*core.mailboxes[1]);
    ASSERT_EQ(core.ranks[0].leave(call.work(0)), 0);
    ASSERT_EQ(core.ranks[2].leave(call.work(2)), 0);
    for (const std::size_t rank : {std::size_t{0}, std::size_t{2}}) {
      wait_for(core.ranks[rank], 0);
      EXPECT_TRUE(core.ranks[rank].take(0)->over);
    }
    while (!waits.ends()) sched_yield();
    EXPECT_EQ(waits.ended_by_agent(), 1);
  }
  EXPECT_EQ(call.memory.difference(), "");
}

TEST(CoreAgent, ARankThatSleepsContinuesItselfWhenTheAgentStops) {
  Core core;
  auto agent = core.agent();
  NodeCall call(call_of(Kind::allgather, 200'000));
  {
    WaitingRank waits(call, 1, core.ranks[1]);
    waits.begin();
    wait_until_asleep(*core.mailboxes[1]);
    agent->stop();
    std::thread other([&] { finish(call, 2, {}); });
    finish(call, 0, {});
    other.join();
    while (!waits.ends()) sched_yield();
    EXPECT_EQ(waits.ended_by_agent(), 0);
  }
  EXPECT_EQ(call.memory.difference(), "");
}

// If the agent's process ends while it has the part, this part is lost, and the rank finds that
// out.
TEST(CoreAgent, ARankThatSleepsFindsThatTheAgentHasEnded) {
  Core core;
  NodeCall call(call_of(Kind::allgather, 1000));
  ChildProcess child([&] { return core.agent(); });
  ASSERT_TRUE(child.has_begun());
  WaitingRank waits(call, 1, core.ranks[1]);
  waits.begin();
  wait_until_asleep(*core.mailboxes[1]);
  child.end();
  while (core.mailboxes[1]->open.load() > 0 && !waits.ends()) sched_yield();
  if (!waits.ends()) {
    std::thread other([&] { finish(call, 2, {}); });
    finish(call, 0, {});
    other.join();
    while (!waits.ends()) sched_yield();
    EXPECT_TRUE(waits.is_done());
    EXPECT_EQ(call.memory.difference(), "");
  }
}

TEST(CoreAgent, ReturnsWhatIsLeftWhenItStops) {
  Core core;
  NodeCall call(call_of(Kind::allgather, 1000));
  auto agent = core.agent();
  Mailbox& mailbox = core.ranks[1];
  const int command = mailbox.leave(call.work(1));  // it needs the other rank to complete
  agent->stop();
  EXPECT_FALSE(mailbox.is_under_way(command));
  EXPECT_TRUE(mailbox.some_have_returned());
  EXPECT_FALSE(mailbox.take(command)->over);
  EXPECT_FALSE(mailbox.some_have_returned());
  EXPECT_EQ(mailbox.leave(call.work(1)), Mailbox::kNone);
  EXPECT_FALSE(mailbox.agent_has_ended());  // it has stopped at `command`
}

TEST(CoreAgent, HasRoomForSoManyCommands) {
  Core core;
  NodeCall call(call_of(Kind::allgather, 1000));
  const auto agent = core.agent();
  for (int i = 0; i < MailboxMemory::kCommands; ++i)
    ASSERT_EQ(core.ranks[1].leave(call.work(1)), i);
  EXPECT_EQ(core.ranks[1].leave(call.work(1)), Mailbox::kNone);
  EXPECT_FALSE(core.ranks[1].take(7)->over);
  EXPECT_EQ(core.ranks[1].leave(call.work(1)), 7);
}

TEST(CoreAgent, ReturnsAnOrderInASegmentThatItDoesNotMap) {
  Core core;
  const auto agent = core.agent();
  NodeCall call(call_of(Kind::allgather, 1000));
  Work work = call.work(1);
  work.memory.token += 1;
  const int command = core.ranks[1].leave(work);
  wait_for(core.ranks[1], command);
  const auto rest = core.ranks[1].take(command);
  EXPECT_FALSE(rest->over);
  EXPECT_FALSE(rest->begun);
}

// The buffer lies in another process, in which nobody may write to its page at first. The operand
// that the sum would replace must stay unchanged.
TEST(CoreAgent, ReturnsASumThatCannotBeWrittenWithItsOperandsUntouched) {
  constexpr std::int64_t kPages = 4, kPage = 4096, kCount = kPages * kPage / 8;
  auto* const private_pages = static_cast<double*>(
      mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::iota(private_pages, private_pages + kCount, 1.0);
  const auto segment = shared_memory(NodeBuffers::bytes(1, kPages * kPage + kPage));
  NodeBuffers node_buffers(segment->data(), 0, 1, kPages * kPage + kPage);
  Schedule schedule;
  schedule.shape.kind = Kind::allreduce;
  schedule.program = {{.kind = Instruction::Kind::reduce,
                       .first = Buffer::node,
                       .second = Buffer::recv,
                       .into = Buffer::recv,
                       .first_at = kPage,
                       .amount = kCount},
                      {.kind = Instruction::Kind::end, .step = 1}};
  const NodeBufferUse turn = node_buffers.next(Ends::any_time, schedule);
  std::iota(reinterpret_cast<double*>(turn.memory() + kPage),
            reinterpret_cast<double*>(turn.memory() + kPage) + kCount, 1.0);
  Operands operands{{nullptr, reinterpret_cast<std::byte*>(private_pages)},
                    find_kernel(Element::float64, Operator::sum),
                    nullptr};
  operands.use(turn, schedule);
  Work work = *work_of(schedule, operands, turn, {false, 0, 0});
  // The last page is read-only, the earlier ones are writable.
  ChildProcess child(
      [&] { return mprotect(private_pages + kCount - kPage / 8, kPage, PROT_READ); });
  ASSERT_TRUE(child.has_begun());
  RemoteProgram program;
  ASSERT_TRUE(program.begin(work, child.id()));
  const std::atomic<std::uint32_t> wanted{0};
  EXPECT_EQ(program.progress(wanted, &work), RemoteProgram::State::unable);
  EXPECT_EQ(work.next, 0u);
  std::vector<double> there(kCount);
  const OtherProcess other(child.id());
  ASSERT_EQ(other.read(reinterpret_cast<std::byte*>(there.data()),
                       reinterpret_cast<std::uintptr_t>(private_pages), kPages * kPage),
            OtherProcess::Moved::all);
  EXPECT_TRUE(std::equal(there.begin(), there.end(), private_pages));
  child.end();
  EXPECT_EQ(program.progress(wanted, &work), RemoteProgram::State::ended);
  munmap(private_pages, kPages * kPage);
}

// The agent's thread holds a robust mutex, which the kernel releases with a mark when the thread
// ends.
TEST(CoreAgent, ARankFindsThatTheAgentHasEndedWithItsOrder) {
  Core core;
  NodeCall call(call_of(Kind::allgather, 1000));
  ChildProcess child([&] { return core.agent(); });
  ASSERT_TRUE(child.has_begun());
  Mailbox& mailbox = core.ranks[1];
  EXPECT_FALSE(mailbox.agent_has_ended());
  child.end();
  const int command = mailbox.leave(call.work(1)), claimed = mailbox.leave(call.work(1));
  EXPECT_TRUE(mailbox.agent_has_ended());
  EXPECT_TRUE(mailbox.agent_has_ended());
  EXPECT_FALSE(mailbox.take(command)->over);
  core.mailboxes[1]->commands[static_cast<std::size_t>(claimed)].state = Command::State::claimed;
  EXPECT_FALSE(mailbox.take(claimed));
}

}  // namespace
}  // namespace weft::test
