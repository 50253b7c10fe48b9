// How ranks agree on the variant of each call. The tests try every order in which starts, waits,
// messages and comparisons can follow each other on a few ranks. All ranks must take the same
// variant in the same call, in the same order, and no program that is right without Weft may come
// to a standstill. docs/inside/learning.md says why this holds for any number of ranks.
#include <gtest/gtest.h>

#include <tuple>

#include "agreement_search.h"

namespace weft::agreement {
namespace {

Action start(int call_class) {
  return {Action::Kind::start, call_class};
}
Action wait(int call) {
  return {Action::Kind::wait, call};
}

Script pipelined(const std::vector<int>& call_classes, int in_flight) {
  Script script;
  const int calls = static_cast<int>(call_classes.size());
  for (int call = 0; call < calls; ++call) {
    script.push_back(start(call_classes[static_cast<std::size_t>(call)]));
    if (call + 1 >= in_flight) script.push_back(wait(call + 1 - in_flight));
  }
  for (int call = calls + 1 - in_flight; call < calls; ++call) script.push_back(wait(call));
  return script;
}

// Keeps three calls in flight. The call classes alternate.
Script pipelined(int calls, int call_classes = kCallClasses) {
  std::vector<int> in_turns;
  for (int call = 0; call < calls; ++call) in_turns.push_back(call % call_classes);
  return pipelined(in_turns, 3);
}

// Rank 0 starts all its calls, then sends; the others receive before they start any.
std::vector<Script> after_a_message(int ranks, int calls, int call_classes = kCallClasses) {
  std::vector<Script> scripts;
  for (int rank = 0; rank < ranks; ++rank) {
    Script script;
    if (rank > 0) script.push_back({Action::Kind::receive, rank});
    for (int call = 0; call < calls; ++call) script.push_back(start(call % call_classes));
    for (int to = 1; rank == 0 && to < ranks; ++to) script.push_back({Action::Kind::send, to});
    for (int call = 0; call < calls; ++call) script.push_back(wait(call));
    scripts.push_back(std::move(script));
  }
  return scripts;
}

// Returns after_a_message() in which every third call is a duplication.
std::vector<Script> with_duplications(int ranks, int calls, int call_classes = kCallClasses) {
  std::vector<Script> scripts = after_a_message(ranks, calls, call_classes);
  for (Script& script : scripts) {
    int started = 0;
    for (Action& action : script)
      if (action.kind == Action::Kind::start && ++started % 3 == 0) action.number = kDuplication;
  }
  return scripts;
}

// Starts calls, makes a blocking collective while they are in flight, and then starts more.
Script with_blocking(int calls) {
  Script script;
  for (int call = 0; call < calls; ++call) script.push_back(start(call % kCallClasses));
  script.push_back({Action::Kind::blocking, calls});
  for (int call = 0; call < calls; ++call) script.push_back(start(call % kCallClasses));
  for (int call = 0; call < calls; ++call) script.push_back(wait(call));
  for (int call = 0; call < calls; ++call) script.push_back(wait(calls + 1 + call));
  return script;
}

// Makes blocking collectives of class 0; with_others: each while a call of class 1 is in flight.
Script of_blocking(int calls, bool with_others) {
  Script script;
  int number = 0, started = -1;
  for (int call = 0; call < calls; ++call) {
    if (with_others) {
      script.push_back(start(1));
      started = number++;
    }
    script.push_back({Action::Kind::blocking, number++, 0});
    if (with_others) script.push_back(wait(started));
  }
  return script;
}

struct Size {
  int ranks, calls, call_classes;
};
// The address sanitizer takes ten times as long, so it gets fewer calls.
#if defined(__SANITIZE_ADDRESS__)
constexpr Size kSizes[] = {{2, 8, 2}, {3, 5, 2}, {4, 4, 1}};
#else
constexpr Size kSizes[] = {{2, 10, 2}, {3, 6, 2}, {4, 4, 1}};
#endif

TEST(Agreement, HoldsWithCallsInFlight) {
  for (const auto [ranks, calls, call_classes] : kSizes) {
    Search search(
        std::vector<Script>(static_cast<std::size_t>(ranks), pipelined(calls, call_classes)),
        Fault::none);
    EXPECT_EQ(search.run(), "");
    EXPECT_GT(search.states(), 500u);
  }
}

TEST(Agreement, HoldsWhereARankStartsNothingBeforeAnotherHasStartedAll) {
  for (const auto [ranks, calls, call_classes] : kSizes)
    EXPECT_EQ(Search(after_a_message(ranks, calls, call_classes), Fault::none).run(), "");
}

TEST(Agreement, HoldsWithDuplicationsBetween) {
  for (const auto [ranks, calls, call_classes] : kSizes)
    EXPECT_EQ(Search(with_duplications(ranks, calls, call_classes), Fault::none).run(), "");
}

// If the system refuses the worker of one rank, no rank takes the variant that needs it.
TEST(Agreement, HoldsWhereARankHasNoWorker) {
  for (const int without : {-1, 0, 1}) {
    Setting setting;
    setting.without_worker = without;
    Search search(std::vector<Script>(2, pipelined(16, 1)), setting);
    EXPECT_EQ(search.run(), "");
    EXPECT_EQ(search.has_taken_worker(), without < 0);
  }
}

TEST(Agreement, HoldsWhereAVariantIsComparedWithItsChallenger) {
  Setting setting;
  setting.learning = Learning::has_challenger;
  for (const bool in_memory : {false, true}) {
    setting.in_memory = in_memory;
    Search search(std::vector<Script>(2, pipelined(14, 1)), setting);
    EXPECT_EQ(search.run(), "");
    EXPECT_TRUE(search.has_met_challenger());
  }
  setting.in_memory = false;
  EXPECT_EQ(Search(after_a_message(3, 10, 1), setting).run(), "");
  EXPECT_EQ(Search(with_duplications(2, 12, 1), setting).run(), "");
  setting.fault = Fault::guesses;
  EXPECT_EQ(Search(std::vector<Script>(2, pipelined(14, 1)), setting).run().substr(0, 25),
            "ranks take different ways");
}

TEST(Agreement, TheSearchFindsADuplicationThatOvertakes) {
  EXPECT_EQ(Search(with_duplications(2, 10), Fault::overtakes).run(),
            "ranks begin their calls in different orders");
}

TEST(Agreement, TheSearchFindsADuplicationThatWaits) {
  EXPECT_EQ(Search(with_duplications(2, 10), Fault::waits).run(), "a standstill");
}

TEST(Agreement, HoldsWithBlockingCollectivesBetween) {
  EXPECT_EQ(Search(std::vector<Script>(2, with_blocking(4)), Fault::none).run(), "");
  EXPECT_EQ(Search(std::vector<Script>(3, with_blocking(3)), Fault::none).run(), "");
}

TEST(Agreement, HoldsWhereBlockingCollectivesLearn) {
  for (const bool with_others : {false, true}) {
    for (const auto& [ranks, calls] : {std::pair(2, 12), std::pair(3, 6), std::pair(4, 4)}) {
      Search search(std::vector<Script>(static_cast<std::size_t>(ranks),
                                        of_blocking(with_others ? calls / 2 : calls, with_others)),
                    Fault::none);
      EXPECT_EQ(search.run(), "");
      EXPECT_GT(search.states(), 100u);
    }
  }
}

// A comparison after a rest takes effect 32 calls later. A rank may come there before its end.
Search about_to_be_watched(Learning learning, Fault fault) {
  Setting setting;
  setting.fault = fault;
  setting.learning = learning;
  return {std::vector<Script>(2, pipelined(46, 1)), setting};
}

TEST(Agreement, HoldsWhereSitesAreAtRest) {
  for (const Learning learning : {Learning::stays_short, Learning::becomes_long}) {
    Search search = about_to_be_watched(learning, Fault::none);
    EXPECT_EQ(search.run(), "");
    EXPECT_GT(search.states(), 500u);
  }
}

TEST(Agreement, TheSearchFindsARankThatGuessesAfterARest) {
  EXPECT_EQ(about_to_be_watched(Learning::becomes_long, Fault::guesses).run().substr(0, 25),
            "ranks take different ways");
}

// There is not room for all three call classes, so that one is forgotten for another, even while
// its calls are deferred.
const std::vector<int> kManyCallClasses{0, 0, 0, 1, 2, 2, 2, 1, 2, 1, 1, 1, 1, 0, 1};

Setting with_room_for(std::uint32_t call_classes, Fault fault = Fault::none) {
  Setting setting;
  setting.fault = fault;
  setting.room = call_classes;
  setting.calls_between_looks = 3;
  return setting;
}

TEST(Agreement, HoldsWhereSitesAreForgotten) {
  for (const auto& [ranks, calls, room] : {std::tuple(2, 15, 1), {2, 15, 2}, {3, 9, 1}}) {
    const std::vector<int> call_classes(kManyCallClasses.begin(), kManyCallClasses.begin() + calls);
    Search search(std::vector<Script>(static_cast<std::size_t>(ranks), pipelined(call_classes, 6)),
                  with_room_for(static_cast<std::uint32_t>(room)));
    EXPECT_EQ(search.run(), "");
    EXPECT_TRUE(search.has_forgotten_while_deferring()) << ranks << ", " << room;
  }
}

TEST(Agreement, TheSearchFindsARankThatForgetsByWhatHasGone) {
  EXPECT_NE(Search(std::vector<Script>(2, pipelined(kManyCallClasses, 6)),
                   with_room_for(1, Fault::counts_late))
                .run(),
            "");
}

TEST(Agreement, TheSearchFindsABlockingCallThatGuesses) {
  EXPECT_EQ(
      Search(std::vector<Script>(2, of_blocking(12, false)), Fault::guesses).run().substr(0, 25),
      "ranks take different ways");
}

// In memory no call is deferred: the first rank to ask decides for all whether they have agreed.
Setting in_memory(Fault fault = Fault::none, Learning learning = Learning::switches) {
  Setting setting;
  setting.fault = fault;
  setting.learning = learning;
  setting.in_memory = true;
  return setting;
}

TEST(Agreement, HoldsInMemory) {
  for (const auto [ranks, calls, call_classes] : kSizes) {
    for (const bool after_message : {false, true}) {
      const std::vector<Script> scripts = after_message
                                              ? after_a_message(ranks, calls, call_classes)
                                              : std::vector<Script>(static_cast<std::size_t>(ranks),
                                                                    pipelined(calls, call_classes));
      Search search(scripts, in_memory());
      EXPECT_EQ(search.run(), "");
      EXPECT_TRUE(search.has_looked_again()) << ranks << ", " << after_message;
    }
  }
}

TEST(Agreement, HoldsInMemoryWithBlockingCollectivesBetween) {
  Search search(std::vector<Script>(2, with_blocking(4)), in_memory());
  EXPECT_EQ(search.run(), "");
}

TEST(Agreement, HoldsInMemoryWhereSitesAreAtRest) {
  for (const Learning learning : {Learning::stays_short, Learning::becomes_long})
    EXPECT_EQ(
        Search(std::vector<Script>(2, pipelined(46, 1)), in_memory(Fault::none, learning)).run(),
        "");
}

TEST(Agreement, TheSearchFindsARankThatDecidesAloneInMemory) {
  const std::vector<Script> scripts(2, pipelined(10));
  EXPECT_EQ(Search(scripts, in_memory(Fault::alone)).run().substr(0, 25),
            "ranks take different ways");
}

TEST(Agreement, TheSearchFindsThatAThreadIsNeeded) {
  EXPECT_EQ(Search(std::vector<Script>(2, of_blocking(12, false)), Fault::no_thread).run(),
            "a standstill");
}

TEST(Agreement, TheSearchFindsARankThatGuesses) {
  EXPECT_EQ(Search(std::vector<Script>(2, pipelined(10)), Fault::guesses).run().substr(0, 25),
            "ranks take different ways");
}

TEST(Agreement, TheSearchFindsAStartThatBlocks) {
  EXPECT_EQ(Search(after_a_message(2, 10), Fault::blocks).run(), "a standstill");
}

}  // namespace
}  // namespace weft::agreement
