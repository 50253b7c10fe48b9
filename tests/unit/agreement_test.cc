// How ranks agree on the way of each call, in every order in which starts, waits, messages and
// comparisons can follow each other on a few ranks: that all ranks take the same way in the same
// call, in the same order, and that no program that is right without Weft comes to a standstill.
// What is run is the library's own code: learners and calls in order. docs/inside/learning.md has
// the reason why it holds for any number of ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "select/calls_in_order.h"
#include "select/learner.h"

namespace weft {
namespace {

constexpr int kSites = 2;
constexpr std::size_t kWays = 3;

// What one rank does next: starts a call of a site, waits for a call, sends, receives, or makes a
// blocking collective, at a site or (-1) one that is always the library's.
struct Action {
  enum class Kind : std::uint8_t { start, wait, send, receive, blocking } kind;
  int number = 0;  // site; call; message
  int site = -1;   // of a blocking collective
};
using Script = std::vector<Action>;

enum class Fault : std::uint8_t {
  none,
  guesses,    // a rank that does not know the way yet takes the rule's
  blocks,     // a rank that does not know the way yet waits for it in the start
  no_thread,  // a rank inside a blocking collective takes no part in comparisons
};

class World;

// One call on one rank that may be held.
struct Call {
  World& world;
  int rank, site, number;
  bool go_on();
};

class World {
 public:
  World(const std::vector<Script>& scripts, Fault fault) : scripts_(scripts), fault_(fault) {
    for (std::size_t rank = 0; rank < scripts.size(); ++rank) {
      ranks_.push_back(std::make_unique<Rank>());
      for (int site = 0; site < kSites; ++site) {
        Learner::Settings settings;
        settings.seed = static_cast<std::uint64_t>(site + 5);
        settings.switches = true;
        ranks_.back()->learners.push_back(std::make_unique<Learner>(kWays, 1, settings, budget_));
      }
    }
  }

  // Events are numbers: the next action of a rank, a look of its thread, the end of a comparison.
  int events() const { return count() * (2 + kSites); }
  bool enabled(int event) const {
    const int rank = event % count(), what = event / count();
    if (what == 0) return may_act(rank);
    if (what == 1) return may_let_go(rank);
    return may_end_comparison(rank, what - 2);
  }
  void happen(int event) {
    const int rank = event % count(), what = event / count();
    if (what == 0) return act(rank);
    if (what == 1) return void(of(rank).held.let_go());
    of(rank).ended[static_cast<std::size_t>(what - 2)] = true;
  }

  bool over() const {
    for (int rank = 0; rank < count(); ++rank)
      if (of(rank).next < scripts_[static_cast<std::size_t>(rank)].size()) return false;
    return true;
  }
  const std::string& wrong() const { return wrong_; }

  // Worlds that go on alike are the same.
  std::string key() const {
    std::string key;
    for (const auto& rank : ranks_) {
      key += std::to_string(rank->next) + (rank->waits_for_way ? '?' : ',') +
             std::to_string(rank->gone.size()) + ',';
      for (int site = 0; site < kSites; ++site) {
        const auto at = static_cast<std::size_t>(site);
        key += std::to_string(rank->compared[at]) + (rank->ended[at]       ? '+'
                                                     : rank->comparing[at] ? '?'
                                                                           : '-');
      }
      key += ';';
    }
    return key;
  }

  // The way of the next call of a site, as next_way() in interpose/sites.cc.
  std::optional<int> next_way(int rank, int site) {
    Rank& own = of(rank);
    const auto at = static_cast<std::size_t>(site);
    Learner& learner = *own.learners[at];
    if (own.comparing[at] && own.ended[at]) {
      learner.agreed(learner.words());
      own.comparing[at] = own.ended[at] = false;
    }
    const auto step = learner.next(1'000'000, 0, own.turn);
    if (!step) return std::nullopt;
    if (step->compare) {
      own.comparing[at] = true;
      ++own.compared[at];
    }
    return step->way;
  }

  // The call goes its way: on all ranks the same, in the same order.
  void goes(int rank, int number, int way) {
    of(rank).gone.push_back(number);
    const auto first = ways_.emplace(number, way).first;
    if (first->second != way)
      wrong_ = "ranks take different ways in call " + std::to_string(number);
    const std::size_t place = of(rank).gone.size() - 1;
    for (const auto& other : ranks_)
      if (other->gone.size() > place && other->gone[place] != number)
        wrong_ = "ranks begin their calls in different orders";
  }

 private:
  struct Rank {
    std::size_t next = 0;        // action
    bool waits_for_way = false;  // in a blocking collective, which has not gone yet
    int calls = 0;               // started
    std::vector<std::unique_ptr<Learner>> learners;
    TrialTurn turn;
    CallsInOrder<std::unique_ptr<Call>> held;
    std::vector<int> gone;
    std::array<bool, kSites> comparing{}, ended{};
    std::array<int, kSites> compared{};  // comparisons begun
  };

  int count() const { return static_cast<int>(ranks_.size()); }
  Rank& of(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  const Rank& of(int rank) const { return *ranks_[static_cast<std::size_t>(rank)]; }
  const Action* next_of(int rank) const {
    const Script& script = scripts_[static_cast<std::size_t>(rank)];
    return of(rank).next < script.size() ? &script[of(rank).next] : nullptr;
  }

  // Any collective may wait for all ranks.
  bool is_over(int call) const {
    for (const auto& rank : ranks_)
      if (std::find(rank->gone.begin(), rank->gone.end(), call) == rank->gone.end()) return false;
    return true;
  }

  bool may_act(int rank) const {
    const Action* action = next_of(rank);
    if (!action) return false;
    switch (action->kind) {
      case Action::Kind::start:
        return fault_ != Fault::blocks || knows_way(rank, action->number);
      case Action::Kind::wait:
        return is_over(action->number);
      case Action::Kind::receive:
        return sent_.count(action->number) > 0;
      case Action::Kind::blocking:
        // Inside already: until all are.
        if (of(rank).gone.size() > static_cast<std::size_t>(action->number))
          return is_over(action->number);
        return !of(rank).held.any() && !(of(rank).waits_for_way && !knows_way(rank, action->site));
      case Action::Kind::send:
        return true;
    }
    return false;
  }

  bool knows_way(int rank, int site) const {
    const auto at = static_cast<std::size_t>(site);
    return !of(rank).comparing[at] || of(rank).ended[at];
  }

  bool may_let_go(int rank) const {
    if (!of(rank).held.any()) return false;
    for (int site = 0; site < kSites; ++site)
      if (of(rank).comparing[static_cast<std::size_t>(site)] &&
          of(rank).ended[static_cast<std::size_t>(site)])
        return true;
    return false;
  }

  // It is an allreduce: not before all ranks have begun it.
  bool may_end_comparison(int rank, int site) const {
    const auto at = static_cast<std::size_t>(site);
    if (!of(rank).comparing[at] || of(rank).ended[at]) return false;
    for (int other = 0; other < count(); ++other) {
      if (of(other).compared[at] < of(rank).compared[at]) return false;
      if (fault_ == Fault::no_thread && is_inside_any(other) && !of(other).ended[at]) return false;
    }
    return true;
  }

  bool is_inside_any(int rank) const {
    const Action* action = next_of(rank);
    return action && action->kind == Action::Kind::blocking && is_inside(rank, action->number);
  }

  void act(int rank) {
    const Action action = *next_of(rank);
    if (action.kind == Action::Kind::start) start(rank, action.number);
    if (action.kind == Action::Kind::send) sent_.insert(action.number);
    if (action.kind == Action::Kind::blocking && !is_inside(rank, action.number)) {
      if (!goes_in_call(rank, action.site)) return;
      if (!is_over(action.number)) return;
    }
    ++of(rank).next;
  }

  // As next_way_in_call(); false: the way is not known yet.
  bool goes_in_call(int rank, int site) {
    auto way = site < 0 ? std::optional(0) : next_way(rank, site);
    if (!way && fault_ == Fault::guesses) way = 0;
    of(rank).waits_for_way = !way;
    if (way) goes(rank, of(rank).calls++, *way);
    return way.has_value();
  }

  bool is_inside(int rank, int number) const {
    return of(rank).gone.size() > static_cast<std::size_t>(number);
  }

  void start(int rank, int site) {
    const int number = of(rank).calls++;
    if (!of(rank).held.any()) {
      auto way = next_way(rank, site);
      if (!way && fault_ == Fault::guesses) way = 0;
      if (way) return goes(rank, number, *way);
    }
    of(rank).held.hold(std::unique_ptr<Call>(new Call{*this, rank, site, number}));
  }

  const std::vector<Script>& scripts_;
  const Fault fault_;
  TrialBudget budget_{1, 0};
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::map<int, int> ways_;  // by call
  std::set<int> sent_;
  std::string wrong_;
};

bool Call::go_on() {
  const auto way = world.next_way(rank, site);
  if (way) world.goes(rank, number, *way);
  return way.has_value();
}

// All orders of events, each state once. What is wrong in some order; "": nothing.
class Search {
 public:
  Search(std::vector<Script> scripts, Fault fault) : scripts_(std::move(scripts)), fault_(fault) {}

  std::string run() {
    look();
    return wrong_;
  }
  std::size_t states() const { return seen_.size(); }

 private:
  std::unique_ptr<World> replay() const {
    auto world = std::make_unique<World>(scripts_, fault_);
    for (const int event : events_) world->happen(event);
    return world;
  }

  void look() {
    const auto world = replay();
    if (!world->wrong().empty()) wrong_ = world->wrong();
    if (!wrong_.empty() || !seen_.insert(world->key()).second) return;
    bool moves = false;
    for (int event = 0; event < world->events(); ++event) {
      if (!world->enabled(event)) continue;
      moves = true;
      events_.push_back(event);
      look();
      events_.pop_back();
    }
    if (!moves && !world->over()) wrong_ = "a standstill";
  }

  const std::vector<Script> scripts_;
  const Fault fault_;
  std::vector<int> events_;
  std::set<std::string> seen_;
  std::string wrong_;
};

Action start(int site) {
  return {Action::Kind::start, site};
}
Action wait(int call) {
  return {Action::Kind::wait, call};
}

// Three calls in flight, of the sites in turns.
Script pipelined(int calls, int sites = kSites) {
  Script script;
  for (int call = 0; call < calls; ++call) {
    script.push_back(start(call % sites));
    if (call >= 2) script.push_back(wait(call - 2));
  }
  script.push_back(wait(calls - 2));
  script.push_back(wait(calls - 1));
  return script;
}

// Rank 0 starts all its calls, then sends; the others receive before they start any.
std::vector<Script> after_a_message(int ranks, int calls, int sites = kSites) {
  std::vector<Script> scripts;
  for (int rank = 0; rank < ranks; ++rank) {
    Script script;
    if (rank > 0) script.push_back({Action::Kind::receive, rank});
    for (int call = 0; call < calls; ++call) script.push_back(start(call % sites));
    for (int to = 1; rank == 0 && to < ranks; ++to) script.push_back({Action::Kind::send, to});
    for (int call = 0; call < calls; ++call) script.push_back(wait(call));
    scripts.push_back(std::move(script));
  }
  return scripts;
}

// Calls in flight, then a blocking collective, then more calls.
Script with_blocking(int calls) {
  Script script;
  for (int call = 0; call < calls; ++call) script.push_back(start(call % kSites));
  script.push_back({Action::Kind::blocking, calls});
  for (int call = 0; call < calls; ++call) script.push_back(start(call % kSites));
  for (int call = 0; call < calls; ++call) script.push_back(wait(call));
  for (int call = 0; call < calls; ++call) script.push_back(wait(calls + 1 + call));
  return script;
}

// Blocking collectives of one site only, or with calls of the other in flight.
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
  int ranks, calls, sites;
};
constexpr Size kSizes[] = {{2, 10, 2}, {3, 6, 2}, {4, 4, 1}};

TEST(Agreement, HoldsWithCallsInFlight) {
  for (const auto [ranks, calls, sites] : kSizes) {
    Search search(std::vector<Script>(static_cast<std::size_t>(ranks), pipelined(calls, sites)),
                  Fault::none);
    EXPECT_EQ(search.run(), "");
    EXPECT_GT(search.states(), 500u);
  }
}

TEST(Agreement, HoldsWhereARankStartsNothingBeforeAnotherHasStartedAll) {
  for (const auto [ranks, calls, sites] : kSizes)
    EXPECT_EQ(Search(after_a_message(ranks, calls, sites), Fault::none).run(), "");
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

TEST(Agreement, TheSearchFindsABlockingCallThatGuesses) {
  EXPECT_EQ(
      Search(std::vector<Script>(2, of_blocking(12, false)), Fault::guesses).run().substr(0, 25),
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
}  // namespace weft
