// The learner when the machine changes its state, for example because its host moves the cores, so
// that the same variant takes another time. A class that is checked often must follow such changes.
#include <gtest/gtest.h>

#include <array>

#include "learner_program.h"

namespace weft {
namespace {

// Times of the rule's variant and of the library's, in a unit that the call class chooses.
using State = std::array<std::int64_t, 2>;
constexpr State kWeftIsFaster{10, 13}, kCopiesAreSlow{30, 13}, kLibraryIsSlow{10, 39};

class Machine {
 public:
  Machine(std::int64_t unit_ns, double budget_percent) : program_(3, budget_percent) {
    Learner::Settings settings;
    settings.variants_of_short = 0b11;
    settings.checks_often = true;
    call_class_ = program_.add_call_class(
        2,
        [this, unit_ns](int rank, int variant, std::uint32_t call) {
          return with_noise(state_[static_cast<std::size_t>(variant)] * unit_ns, rank, call);
        },
        settings);
  }

  // Makes calls in this state and returns how many of them took the library's variant.
  int of_library(const State& state, int calls) {
    state_ = state;
    int of_library = 0;
    for (int call = 0; call < calls; ++call) of_library += program_.call(call_class_) == kNative;
    return of_library;
  }
  void interrupt() { program_.interrupt(call_class_); }
  std::uint64_t calls_on_trial() const {
    return program_.learner(call_class_).found().calls_on_trial;
  }

 private:
  SimulatedProgram program_;
  int call_class_ = 0;
  State state_ = kWeftIsFaster;
};

constexpr std::int64_t kUnits_ns[] = {400, 2'000, 20'000, 200'000};
constexpr int kFollows = 300, kLong = 40'000, kAfter = 1'000;

TEST(Learner, FollowsTheStatesOfTheMachine) {
  for (const std::int64_t unit_ns : kUnits_ns) {
    Machine machine(unit_ns, 50);
    machine.of_library(kWeftIsFaster, kLong);
    for (int time = 0; time < 3; ++time) {
      machine.of_library(kCopiesAreSlow, kFollows);
      EXPECT_GT(machine.of_library(kCopiesAreSlow, kAfter), kAfter * 9 / 10) << unit_ns;
      machine.of_library(kLibraryIsSlow, kFollows);
      EXPECT_LT(machine.of_library(kLibraryIsSlow, kAfter), kAfter / 10) << unit_ns;
    }
  }
}

TEST(Learner, TriesLittleWhileTheStateStays) {
  for (const std::int64_t unit_ns : kUnits_ns) {
    Machine machine(unit_ns, 1);
    machine.of_library(kWeftIsFaster, kLong);
    const std::uint64_t before = machine.calls_on_trial();
    EXPECT_LT(machine.of_library(kWeftIsFaster, kLong), kLong / 100) << unit_ns;
    EXPECT_LT(machine.calls_on_trial() - before, kLong / 50) << unit_ns;
  }
}

// The first calls are watched, and the next ones try both variants. Calls of another class have
// been taken for some of these.
TEST(Learner, TakesNoTimesFromBeforeAnInterruption) {
  constexpr State kOther{1000, 1};
  constexpr int kShort = 60, kMostOnTrial = 20;
  for (const std::int64_t unit_ns : {20'000, 200'000})
    for (int before = 0; before < 24; ++before) {
      Machine machine(unit_ns, 50);
      machine.of_library(kWeftIsFaster, before);
      machine.of_library(kOther, 2);
      machine.interrupt();
      EXPECT_LE(machine.of_library(kWeftIsFaster, kShort), kMostOnTrial) << before;
      EXPECT_LT(machine.of_library(kWeftIsFaster, kAfter), kAfter / 10) << before;
    }
}

// A check finds calls that take another time; before another one confirms that, they turn out to be
// calls of another class.
TEST(Learner, LearnsNothingAnewFromCallsOfAnotherClass) {
  constexpr State kOther{100, 130};
  for (const std::int64_t unit_ns : kUnits_ns) {
    Machine machine(unit_ns, 0.1);
    machine.of_library(kWeftIsFaster, kLong);
    const std::uint64_t before = machine.calls_on_trial();
    for (int calls = 1; calls < 80; ++calls) {
      machine.of_library(kOther, calls % 12);
      machine.interrupt();
      machine.of_library(kWeftIsFaster, 100);
    }
    EXPECT_LT(machine.calls_on_trial() - before, kLong / 100) << unit_ns;
  }
}

}  // namespace
}  // namespace weft
