// How a thread falls asleep, in every order in which the thread and those that wake it can access
// memory. It must never sleep on while there is work for it.
#include "engine/sleeper.h"

#include <gtest/gtest.h>

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace weft {
namespace {

enum class Fault : std::uint8_t {
  none,
  says_so_late,     // the thread looks for work before it announces that it falls asleep
  sleeps_anyway,    // the thread falls asleep although it has been woken since
  is_asked_before,  // a caller checks whether the thread sleeps before it has left its work
};

// The memory that the threads share.
struct Memory {
  int work = 0, transfers = 0;
  bool stops = false;
  std::uint32_t calls = 0;
  Asleep said = Asleep::no;
  bool sleeps = false;  // whether the thread sleeps in the kernel
};

// An operation in which each access is a step. It is repeated from its beginning up to the next
// step, with the answers that it got before.
struct Steps {
  Memory& memory;
  std::vector<int>& answers;
  Fault fault;
  std::size_t next = 0;
  bool may_resume = true;
};
struct HeldUp {};
Steps* steps = nullptr;  // those of the thread that resumes

template <class Access>
int step(Access access) {
  if (steps->next == steps->answers.size()) {
    if (!std::exchange(steps->may_resume, false)) throw HeldUp{};
    steps->answers.push_back(static_cast<int>(access(steps->memory)));
  }
  return steps->answers[steps->next++];
}

class SteppedWords {
 public:
  std::uint32_t calls() const {
    return static_cast<std::uint32_t>(step([](Memory& memory) { return memory.calls; }));
  }
  void count_call() const {
    step([](Memory& memory) { return ++memory.calls; });
  }
  void wake() const {
    step([](Memory& memory) { return memory.sleeps = false; });
  }
  void sleep(std::uint32_t calls, std::int64_t) {
    if (steps->fault == Fault::says_so_late) set(late_);
    const bool anyway = steps->fault == Fault::sleeps_anyway;
    step([&](Memory& memory) { return memory.sleeps = anyway || memory.calls == calls; });
  }
  void say(Asleep how) {
    late_ = how;
    if (steps->fault != Fault::says_so_late || how == Asleep::no) set(how);
  }
  Asleep said() const {
    if (steps->fault == Fault::is_asked_before) return static_cast<Asleep>(steps->answers.front());
    return static_cast<Asleep>(step([](Memory& memory) { return memory.said; }));
  }

 private:
  static void set(Asleep how) {
    step([&](Memory& memory) {
      memory.said = how;
      return 0;
    });
  }
  Asleep late_{};
};

using Stepped = Sleeper<SteppedWords>;

template <class Tell>
void tell(Tell tell) {
  if (steps->fault == Fault::is_asked_before) step([](Memory& memory) { return memory.said; });
  step([&](Memory& memory) {
    tell(memory);
    return 0;
  });
}

// What a caller does before it wakes the thread. Each caller does it once.
enum class Caller : std::uint8_t { submits, leaves_transfers, stops };

void go_through(Caller caller) {
  Stepped sleeper;
  switch (caller) {
    case Caller::submits:
      tell([](Memory& memory) { ++memory.work; });
      return sleeper.wake_from(
          Asleep::dozing, [] { return step([](Memory& memory) { return memory.work > 0; }) != 0; });
    case Caller::leaves_transfers:
      tell([](Memory& memory) { ++memory.transfers; });
      return sleeper.wake_from(Asleep::deeply, [] { return true; });
    case Caller::stops:
      tell([](Memory& memory) { memory.stops = true; });
      return sleeper.call();
  }
}

// Takes the work that there is, or sleeps. Returns false if the thread has been stopped.
bool go_through_thread() {
  if (step([](Memory& memory) { return std::exchange(memory.work, 0); }) > 0) return true;
  if (step([](Memory& memory) { return memory.stops; }) != 0) return false;
  const bool dozes = step([](Memory& memory) { return memory.transfers; }) > 0;
  Stepped().sleep(dozes ? Asleep::dozing : Asleep::deeply, SleepWords::kNoLimit, [&] {
    return step([&](Memory& memory) {
             return memory.work > 0 || memory.stops || (!dozes && memory.transfers > 0);
           }) != 0;
  });
  return true;
}

class World {
 public:
  World(std::vector<Caller> callers, Fault fault)
      : callers_(std::move(callers)), actors_(callers_.size() + 1), fault_(fault) {}

  std::size_t actors() const { return actors_.size(); }
  bool may_resume(std::size_t actor) const {
    return !actors_[actor].is_over && !(actor == callers_.size() && memory_.sleeps);
  }
  // Returns whether the thread sleeps on though there is work; if it dozes, transfers wake it.
  bool is_lost() const {
    const bool dozes = memory_.said == Asleep::dozing;
    return memory_.sleeps &&
           (memory_.work > 0 || memory_.stops || (!dozes && memory_.transfers > 0));
  }

  // Lets one actor make one access to memory, and all that follows without another access.
  void resume(std::size_t number) {
    Actor& actor = actors_[number];
    Steps own{memory_, actor.answers, fault_};
    steps = &own;
    try {
      if (number < callers_.size()) {
        go_through(callers_[number]);
        actor.is_over = true;
      } else {
        actor.is_over = !go_through_thread();
      }
    } catch (const HeldUp&) {
      return;
    }
    actor.answers.clear();
  }

  std::string key() const {
    std::string key;
    const auto add = [&](auto... values) { ((key += static_cast<char>(values)), ...); };
    add(memory_.work, memory_.transfers, memory_.stops, memory_.calls, memory_.said,
        memory_.sleeps);
    for (const Actor& actor : actors_) {
      add(actor.is_over, 127);
      for (const int answer : actor.answers) add(answer);
    }
    return key;
  }

 private:
  struct Actor {
    std::vector<int> answers;  // results of the accesses that the operation under way has made
    bool is_over = false;
  };

  std::vector<Caller> callers_;
  std::vector<Actor> actors_;  // the callers; the last one is the thread
  Memory memory_;
  Fault fault_;
};

// Tries all orders of accesses and visits each state once.
class Search {
 public:
  bool finds_a_lost_call(const World& world) {
    if (!seen_.insert(world.key()).second) return false;
    bool is_end = true;
    for (std::size_t actor = 0; actor < world.actors(); ++actor) {
      if (!world.may_resume(actor)) continue;
      is_end = false;
      World next = world;
      next.resume(actor);
      if (finds_a_lost_call(next)) return true;
    }
    return is_end && world.is_lost();
  }
  std::size_t states() const { return seen_.size(); }

 private:
  std::unordered_set<std::string> seen_;
};

bool loses_a_call(const std::vector<Caller>& callers, Fault fault = Fault::none) {
  return Search().finds_a_lost_call(World(callers, fault));
}

TEST(Sleeper, NoCallIsLostInAnyOrder) {
  using enum Caller;
  for (const Caller last : {submits, leaves_transfers, stops}) {
    Search search;
    EXPECT_FALSE(search.finds_a_lost_call(World({submits, leaves_transfers, last}, Fault::none)));
    EXPECT_GT(search.states(), 1'000u);
  }
}

TEST(Sleeper, TheSearchFindsAThreadThatSaysTooLateThatItSleeps) {
  EXPECT_TRUE(loses_a_call({Caller::submits}, Fault::says_so_late));
  EXPECT_TRUE(loses_a_call({Caller::leaves_transfers}, Fault::says_so_late));
}

TEST(Sleeper, TheSearchFindsAThreadThatSleepsAlthoughItWasCalled) {
  for (const Caller caller : {Caller::submits, Caller::leaves_transfers, Caller::stops})
    EXPECT_TRUE(loses_a_call({caller}, Fault::sleeps_anyway));
}

TEST(Sleeper, TheSearchFindsACallerThatLooksTooEarly) {
  EXPECT_TRUE(loses_a_call({Caller::submits}, Fault::is_asked_before));
  EXPECT_TRUE(loses_a_call({Caller::leaves_transfers}, Fault::is_asked_before));
}

}  // namespace
}  // namespace weft
