// The simulator's cores and memory: who has a core when, and how fast copies share the memory.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <vector>

#include "sim/scheduler.h"

namespace weft::sim {
namespace {

using Kind = Demand::Kind;

Machine machine_of(int cores) {
  Machine machine;
  machine.cores = cores;
  machine.core_copy = 100;
  machine.numa_copy = 100 * cores;
  machine.poll_us = 1;
  machine.switch_us = 2;
  machine.slice_us = 50;
  return machine;
}

// Threads that execute a list of demands. `met` holds when each demand was met.
class Script : public Threads {
 public:
  explicit Script(const Machine& machine) : scheduler(events, machine, 1, *this) {}

  int add(int core, std::deque<Demand> demands, bool asleep = false) {
    const int thread = scheduler.add(core, asleep);
    left[thread] = std::move(demands);
    return thread;
  }
  Demand next(int thread, double now_us) override {
    met[thread].push_back(now_us);
    auto& demands = left[thread];
    if (demands.empty()) return {};
    const Demand demand = demands.front();
    demands.pop_front();
    return demand;
  }
  void run() {
    scheduler.begin();
    while (!events.empty()) scheduler.happens(events.next());
  }
  double end(int thread) { return met[thread].back(); }

  Events events;
  std::map<int, std::deque<Demand>> left;
  std::map<int, std::vector<double>> met;
  Scheduler scheduler;
};

TEST(SimScheduler, OneThreadWorksWithoutASwitch) {
  const Machine machine = machine_of(1);
  Script script(machine);
  const int thread = script.add(0, {{Kind::work, 10}, {Kind::work, 5}});
  script.run();
  EXPECT_DOUBLE_EQ(script.end(thread), 15);
  EXPECT_EQ(script.scheduler.switches(), 0u);
}

TEST(SimScheduler, ThreadsOfACoreTakeTurnsBySlices) {
  const Machine machine = machine_of(1);
  Script script(machine);
  const int one = script.add(0, {{Kind::work, 90}});
  const int other = script.add(0, {{Kind::work, 60}});
  script.run();
  // `one` runs during 2…52 and 106…146, `other` during 54…104 and 148…158, each after a switch.
  EXPECT_DOUBLE_EQ(script.end(one), 146);
  EXPECT_DOUBLE_EQ(script.end(other), 158);
  EXPECT_EQ(script.scheduler.switches(), 4u);
}

TEST(SimScheduler, ThreadsOfTwoCoresDoNotDelayEachOther) {
  const Machine machine = machine_of(2);
  Script script(machine);
  const int one = script.add(0, {{Kind::work, 100}});
  const int other = script.add(1, {{Kind::work, 100}});
  script.run();
  EXPECT_DOUBLE_EQ(script.end(one), 100);
  EXPECT_DOUBLE_EQ(script.end(other), 100);
}

TEST(SimScheduler, OneThatPollsAloneLooksAtEachPoll) {
  const Machine machine = machine_of(1);
  Script script(machine);
  const int thread = script.add(0, {{Kind::poll, 0, 7.5}});
  script.run();
  EXPECT_DOUBLE_EQ(script.end(thread), 8);
}

TEST(SimScheduler, OneThatPollsAmongOthersWaitsForItsTurn) {
  const Machine machine = machine_of(1);
  Script script(machine);
  // One round of three threads takes 9: a switch and a look for each.
  script.add(0, {{Kind::poll, 0, kNever}});
  const int looks = script.add(0, {{Kind::poll, 0, 100}});
  script.add(0, {{Kind::poll, 0, kNever}});
  script.run();
  ASSERT_EQ(script.met[looks].size(), 2u);
  EXPECT_GE(script.end(looks), 100);
  EXPECT_LE(script.end(looks), 109);
  EXPECT_GT(script.scheduler.switches(), 25u);
}

TEST(SimScheduler, AWokenThreadWaitsForTheSliceOfTheOther) {
  const Machine machine = machine_of(1);
  Script script(machine);
  const int works = script.add(0, {{Kind::work, 80}});
  const int sleeps = script.add(0, {{Kind::work, 10}}, true);
  script.scheduler.wake(sleeps, 20);
  script.run();
  EXPECT_DOUBLE_EQ(script.met[sleeps].front(), 52);  // ends after 50 and a switch
  EXPECT_DOUBLE_EQ(script.end(sleeps), 62);
  EXPECT_DOUBLE_EQ(script.end(works), 94);
}

TEST(SimScheduler, OneThatSpinsKeepsItsCore) {
  const Machine machine = machine_of(1);
  Script script(machine);
  const int spins = script.add(0, {{Kind::spin, 0, 30}});
  const int waits = script.add(0, {{Kind::work, 1}});
  script.run();
  EXPECT_DOUBLE_EQ(script.end(spins), 31);
  EXPECT_GT(script.end(waits), 31);
}

TEST(SimMemory, CopiesShareTheBandwidthOfTheirNode) {
  Machine machine = machine_of(4);
  machine.numa_copy = 200;
  Script script(machine);
  std::vector<int> threads;
  for (int core = 0; core < 4; ++core) threads.push_back(script.add(core, {{Kind::copy, 1000}}));
  script.run();
  for (const int thread : threads) EXPECT_NEAR(script.end(thread), 20, 1e-6);
}

TEST(SimMemory, WhoIsLeftAloneIsFasterAgain) {
  Machine machine = machine_of(2);
  machine.numa_copy = 100;
  Script script(machine);
  const int brief = script.add(0, {{Kind::copy, 500}});
  const int lasting = script.add(1, {{Kind::copy, 1500}});
  script.run();
  EXPECT_NEAR(script.end(brief), 10, 1e-6);  // each copy gets 50 bytes per unit of time
  EXPECT_NEAR(script.end(lasting), 20, 1e-6);
}

TEST(SimMemory, NodesDoNotShare) {
  Machine machine = machine_of(2);
  machine.numa_nodes = 2;
  machine.numa_copy = 100;
  Script script(machine);
  const int one = script.add(0, {{Kind::copy, 1000}});
  const int other = script.add(1, {{Kind::copy, 1000}});
  script.run();
  EXPECT_NEAR(script.end(one), 10, 1e-6);
  EXPECT_NEAR(script.end(other), 10, 1e-6);
}

TEST(SimMemory, AnInterruptedCopyGoesOnWhereItWas) {
  Machine machine = machine_of(1);
  Script script(machine);
  const int copies = script.add(0, {{Kind::copy, 8000}});  // takes 80 without interruptions
  const int works = script.add(0, {{Kind::work, 10}});
  script.run();
  EXPECT_NEAR(script.end(works), 64, 1e-6);   // runs after a slice of 50 and two switches
  EXPECT_NEAR(script.end(copies), 96, 1e-6);  // 30 of the 80 were left
}

}  // namespace
}  // namespace weft::sim
