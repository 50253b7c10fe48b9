// Searches all orders in which starts, waits, messages and comparisons can follow each other on a
// few ranks, and reports what goes wrong in one of them. It runs the library's own code: learners,
// calls in order and call classes in use. Planted faults show that the search finds them.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "select/call_classes_in_use.h"
#include "select/calls_in_order.h"
#include "select/learner.h"
#include "shm/node_comparisons.h"

namespace weft::agreement {

inline constexpr int kCallClasses = 2;
inline constexpr int kMostCallClasses = 8;  // includes those that have been forgotten
inline constexpr std::size_t kVariants = 3;
inline constexpr int kByWorker = kVariants - 1;
inline constexpr int kChallenger = 1;  // the library's own variant
inline constexpr std::int64_t kPeriod_ns = 1'000'000;
inline constexpr int kDuplication = -1;  // stands for MPI_Comm_idup, whose variant is always known

// The next action of a rank. A blocking collective belongs to a call class, or is always the
// library's (-1).
struct Action {
  enum class Kind : std::uint8_t { start, wait, send, receive, blocking } kind;
  int number = 0;       // number of the call class, of the call or of the message
  int call_class = -1;  // the call class of a blocking collective
};
using Script = std::vector<Action>;

enum class Fault : std::uint8_t {
  none,
  guesses,      // a rank that does not know the variant yet takes the rule's
  blocks,       // a rank that does not know the variant yet waits for it in the start
  no_thread,    // a rank inside a blocking collective takes no part in comparisons
  counts_late,  // a rank counts calls when they begin, not when they are made
  overtakes,    // a duplication begins at once, though calls before it are deferred
  waits,        // a duplication waits until no call is deferred
  alone,        // each rank decides by itself whether all have published their times
};

// The state of the learners when the search begins.
enum class Learning : std::uint8_t {
  switches,        // learners change the variant every few calls
  stays_short,     // call classes with short periods are at rest, and about to be watched again
  becomes_long,    // call classes are at rest; their periods have become long meanwhile
  has_challenger,  // the known variant is about to be checked, and then compared with a challenger
};

struct Setting {
  Fault fault = Fault::none;
  Learning learning = Learning::switches;
  bool in_memory = false;             // ranks compare in the node's memory
  std::uint32_t room = kCallClasses;  // number of call classes that are kept
  // Calls after which a rank checks which call classes are in use.
  std::uint32_t calls_between_looks = 1000;
  // If set, the last variant needs a worker. This rank cannot have one; -1: all ranks can.
  std::optional<int> without_worker{};
};

using InMemory = NodeComparisons<std::tuple_size_v<Learner::Words>>;

struct CallClass {
  CallClass(int key, int number, const Learner::Settings& settings, TrialBudget& budget)
      : key(key), number(number), learner(kVariants, 1, settings, budget) {}

  const int key;
  const int number;  // position in the order in which the rank has made its call classes
  CallsMade made;
  Learner learner;
  std::optional<InMemory> in_memory;
  std::int64_t begun = 0, told = 0;
};

class World;

// One call on one rank that may be deferred. call_class: nullptr if there was no room.
struct Call {
  World& world;
  int rank, number;
  CallClass* call_class;
  bool try_to_start();
};

class World {
 public:
  World(const std::vector<Script>& scripts, const Setting& setting)
      : scripts_(scripts), fault_(setting.fault), setting_(setting) {
    CallClassesInUse<CallClass>::Limits limits;
    limits.most = setting.room;
    limits.calls_between_looks = setting.calls_between_looks;
    limits.most_forgotten = 1;
    for (std::size_t rank = 0; rank < scripts.size(); ++rank)
      ranks_.push_back(std::make_unique<Rank>(limits));
    for (auto& rank : ranks_)
      if (setting.in_memory) rank->call_classes.have_room_for_all();
  }

  // An event is a number: a rank's next action, a check by its thread, or the end of a comparison.
  int events() const { return count() * (2 + kMostCallClasses); }
  bool enabled(int event) const {
    const int rank = event % count(), what = event / count();
    if (what == 0) return may_act(rank);
    if (what == 1) return may_release(rank);
    return may_end_comparison(rank, what - 2);
  }
  void happen(int event) {
    const int rank = event % count(), what = event / count();
    if (what == 0) return act(rank);
    if (what == 1) return void(of(rank).deferred.release());
    of(rank).ended[static_cast<std::size_t>(what - 2)] = true;
  }

  bool over() const {
    for (int rank = 0; rank < count(); ++rank)
      if (of(rank).next < scripts_[static_cast<std::size_t>(rank)].size()) return false;
    return true;
  }
  const std::string& wrong() const { return wrong_; }
  bool has_forgotten_while_deferring() const { return forgotten_while_deferring_; }

  // Two worlds with the same key continue in the same way.
  std::string key() const {
    std::string key;
    for (const auto& rank : ranks_) {
      key += std::to_string(rank->next) + (rank->waits_for_variant ? '?' : ',') +
             std::to_string(rank->gone.size()) + ',';
      for (int call_class = 0; call_class < kMostCallClasses; ++call_class) {
        const auto at = static_cast<std::size_t>(call_class);
        key += std::to_string(rank->compared[at]) + (rank->ended[at]       ? '+'
                                                     : rank->comparing[at] ? '?'
                                                                           : '-');
      }
      key += ';';
    }
    for (const auto& words : memory_)
      for (const std::int64_t word : words) key += word == 0 ? "," : std::to_string(word) + ',';
    for (const auto& [look, is_over] : looks_) key += is_over ? '!' : '.';
    return key;
  }

  // Returns the variant of the class's next call, as next_variant() in
  // runtime/adaptive/call_classes.cc does.
  std::optional<int> next_variant(int rank, CallClass* call_class) {
    const auto variant = call_class ? next_variant(rank, *call_class) : std::optional(0);
    if (variant && fault_ == Fault::counts_late) count_call(rank, call_class);
    return variant;
  }
  std::optional<int> next_variant(int rank, CallClass& call_class) {
    Rank& own = of(rank);
    const auto at = static_cast<std::size_t>(call_class.number);
    if (own.comparing[at] && own.ended[at]) {
      call_class.learner.agreed(told_.at({call_class.number, own.compared[at]}));
      own.comparing[at] = own.ended[at] = false;
    }
    const bool is_long = setting_.learning == Learning::becomes_long ||
                         setting_.learning == Learning::has_challenger;
    const std::int64_t period_ns = is_long ? kPeriod_ns : 0;
    const auto next = [&] {
      return call_class.learner.next(1'000'000 + call_class.begun * period_ns, 0, own.turn);
    };
    auto step = next();
    if (!step && call_class.in_memory) {
      look_at_comparison(call_class);
      step = next();
    }
    if (!step) return std::nullopt;
    ++call_class.begun;
    if (setting_.learning == Learning::has_challenger && step->variant == kChallenger)
      met_challenger_ = true;
    if (step->compare && call_class.in_memory) {
      ++call_class.told;
      call_class.in_memory->publish(call_class.learner.words());
    } else if (step->compare) {
      if (setting_.without_worker == rank) call_class.learner.say_unable();
      own.comparing[at] = true;
      tell(call_class.number, ++own.compared[at], call_class.learner.words());
    }
    if (setting_.without_worker && step->variant == kByWorker) note_worker(call_class);
    return step->variant;
  }

  // Asks for the result of a comparison in memory, as runtime/adaptive/call_classes.cc does.
  void look_at_comparison(CallClass& call_class) {
    auto greatest = call_class.in_memory->look();
    if (fault_ == Fault::alone && !greatest && all_have_told(call_class))
      greatest = call_class.learner.words();
    looks_[{call_class.key, call_class.begun}] = greatest.has_value();
    if (greatest)
      call_class.learner.agreed(*greatest);
    else
      call_class.learner.agreed_to_look_later();
  }

  bool has_taken_worker() const { return taken_worker_; }
  bool has_met_challenger() const { return met_challenger_; }
  // Returns whether some rank has looked at a comparison before all had published their times.
  bool has_looked_again() const {
    return std::any_of(looks_.begin(), looks_.end(), [](const auto& one) { return !one.second; });
  }

  // Records that the call begins. All ranks must do so with the same variant, in the same order.
  void goes(int rank, int number, int variant) {
    of(rank).gone.push_back(number);
    const auto first = variants_.emplace(number, variant).first;
    if (first->second != variant)
      wrong_ = "ranks take different ways in call " + std::to_string(number);
    const std::size_t place = of(rank).gone.size() - 1;
    for (const auto& other : ranks_)
      if (other->gone.size() > place && other->gone[place] != number)
        wrong_ = "ranks begin their calls in different orders";
  }

 private:
  struct Rank {
    explicit Rank(const CallClassesInUse<CallClass>::Limits& limits) : call_classes(limits) {}

    std::size_t next = 0;            // index of the next action in the rank's script
    bool waits_for_variant = false;  // the rank is in a blocking collective that has not begun yet
    int calls = 0;                   // number of calls that the rank has started
    CallClassesInUse<CallClass> call_classes;
    int call_classes_made = 0;
    CallsMade without_room;
    std::map<int, CallClass*> remembered;  // call classes by key
    // Class of the blocking collective that waits for its variant.
    CallClass* blocking = nullptr;
    TrialTurn turn;
    CallsInOrder<std::unique_ptr<Call>> deferred;
    std::vector<int> gone;
    std::array<bool, kMostCallClasses> comparing{}, ended{};  // by number of the call class
    std::array<int, kMostCallClasses> compared{};             // number of comparisons begun
  };

  int count() const { return static_cast<int>(ranks_.size()); }
  // Adds a rank's words to a comparison, in which ranks agree on the greatest of each word.
  void tell(int call_class, int comparison, const Learner::Words& words) {
    Learner::Words& greatest =
        told_.emplace(std::pair(call_class, comparison), words).first->second;
    for (std::size_t i = 0; i < words.size(); ++i) greatest[i] = std::max(greatest[i], words[i]);
  }
  bool all_have_told(const CallClass& call_class) const {
    return memory_[static_cast<std::size_t>(call_class.key)]
                  [InMemory::word_of(call_class.told, InMemory::kComplete)] != 0;
  }
  // Notes that a worker's variant was taken, which the first comparison must have permitted.
  void note_worker(const CallClass& call_class) {
    taken_worker_ = true;
    if (*setting_.without_worker >= 0 ||
        of(0).compared[static_cast<std::size_t>(call_class.number)] == 0)
      wrong_ = "a way is taken that some rank may not have";
  }
  Rank& of(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  const Rank& of(int rank) const { return *ranks_[static_cast<std::size_t>(rank)]; }
  const Action* next_of(int rank) const {
    const Script& script = scripts_[static_cast<std::size_t>(rank)];
    return of(rank).next < script.size() ? &script[of(rank).next] : nullptr;
  }

  // Returns whether all ranks have begun the call, since any collective may wait for all ranks.
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
        if (fault_ == Fault::waits && action->number == kDuplication)
          return !of(rank).deferred.any();
        return fault_ != Fault::blocks ||
               knows_variant(rank, known_call_class(rank, action->number));
      case Action::Kind::wait:
        return is_over(action->number);
      case Action::Kind::receive:
        return sent_.count(action->number) > 0;
      case Action::Kind::blocking:
        // The rank is inside the collective until all ranks are.
        if (of(rank).gone.size() > static_cast<std::size_t>(action->number))
          return is_over(action->number);
        return !of(rank).deferred.any() &&
               !(of(rank).waits_for_variant && !knows_variant(rank, of(rank).blocking));
      case Action::Kind::send:
        return true;
    }
    return false;
  }

  bool knows_variant(int rank, const CallClass* call_class) const {
    if (!call_class) return true;
    const auto at = static_cast<std::size_t>(call_class->number);
    return !of(rank).comparing[at] || of(rank).ended[at];
  }

  bool may_release(int rank) const {
    if (!of(rank).deferred.any()) return false;
    for (int call_class = 0; call_class < kMostCallClasses; ++call_class)
      if (of(rank).comparing[static_cast<std::size_t>(call_class)] &&
          of(rank).ended[static_cast<std::size_t>(call_class)])
        return true;
    return false;
  }

  // A comparison is an allreduce: it ends only after all ranks have begun it.
  bool may_end_comparison(int rank, int call_class) const {
    const auto at = static_cast<std::size_t>(call_class);
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
      if (!goes_in_call(rank, action.call_class)) return;
      if (!is_over(action.number)) return;
    }
    ++of(rank).next;
  }

  // Begins a blocking collective; returns false while its variant is unknown.
  bool goes_in_call(int rank, int key) {
    Rank& own = of(rank);
    if (!own.waits_for_variant) own.blocking = key < 0 ? nullptr : call_class_of(rank, key);
    auto variant = next_variant(rank, own.blocking);
    if (!variant && fault_ == Fault::guesses) variant = 0;
    own.waits_for_variant = !variant;
    if (variant) goes(rank, own.calls++, *variant);
    return variant.has_value();
  }

  bool is_inside(int rank, int number) const {
    return of(rank).gone.size() > static_cast<std::size_t>(number);
  }

  void start(int rank, int key) {
    const int number = of(rank).calls++;
    CallClass* const call_class = key == kDuplication ? nullptr : call_class_of(rank, key);
    if (key == kDuplication && fault_ == Fault::overtakes) return goes(rank, number, 0);
    if (!of(rank).deferred.any()) {
      auto variant = next_variant(rank, call_class);
      if (!variant && fault_ == Fault::guesses) variant = 0;
      if (variant) return goes(rank, number, *variant);
    }
    if (setting_.in_memory) wrong_ = "a call is deferred";
    of(rank).deferred.defer(std::unique_ptr<Call>(new Call{*this, rank, number, call_class}));
  }

  CallClass* known_call_class(int rank, int key) const {
    const auto known = of(rank).remembered.find(key);
    return known == of(rank).remembered.end() ? nullptr : known->second;
  }

  // Returns the class of the call that the rank makes now, as plan_for() and count_call() do;
  // nullptr if there is no room. The last rank remembers no classes and asks each time.
  CallClass* call_class_of(int rank, int key) {
    Rank& own = of(rank);
    const bool asks = rank + 1 == count() || own.remembered.count(key) == 0;
    if (asks)
      own.remembered[key] = own.call_classes.find_or_make(key, [&] { return made(own, key); });
    CallClass* const call_class = known_call_class(rank, key);
    if (fault_ != Fault::counts_late) count_call(rank, call_class);
    return call_class;
  }

  void count_call(int rank, CallClass* call_class) {
    Rank& own = of(rank);
    if (!own.call_classes.count_call(call_class ? call_class->made : own.without_room)) return;
    own.remembered.clear();
    if (own.deferred.any()) forgotten_while_deferring_ = true;
  }

  std::unique_ptr<CallClass> made(Rank& rank, int key) {
    Learner::Settings settings;
    settings.seed = static_cast<std::uint64_t>(key + 4);
    settings.switches = setting_.learning == Learning::switches;
    if (setting_.without_worker) settings.conditional = kByWorker;
    if (setting_.learning == Learning::has_challenger)
      settings.known = {{0, kPeriod_ns, 1, {kPeriod_ns, kPeriod_ns, kPeriod_ns}}};
    auto call_class = std::make_unique<CallClass>(key, rank.call_classes_made++, settings, budget_);
    if (setting_.in_memory) {
      auto* const words = memory_[static_cast<std::size_t>(key)].data();
      call_class->in_memory.emplace(SharedWords(reinterpret_cast<std::byte*>(words)), count());
    }
    if (setting_.learning == Learning::has_challenger)
      bring_to_look(call_class->learner);
    else if (!settings.switches)
      bring_to_rest(call_class->learner);
    return call_class;
  }

  // Makes calls up to the one before the learner watches again.
  static void bring_to_rest(Learner& learner) {
    TrialTurn turn;
    const auto call = [&] {
      if (learner.next(1, 0, turn)) return;
      learner.agreed(learner.words());
      learner.next(1, 0, turn);
    };
    while (learner.wants_time()) call();
    while (!learner.wants_time()) call();
  }

  // Makes calls up to the one before the learner checks what is known.
  static void bring_to_look(Learner& learner) {
    constexpr int kCalls = 16;
    TrialTurn turn;
    for (int call = 0; call < kCalls; ++call)
      learner.next(1'000'000 + (call - kCalls) * kPeriod_ns, 0, turn);
  }

  const std::vector<Script>& scripts_;
  const Fault fault_;
  const Setting setting_;
  TrialBudget budget_{1, 0};
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::map<int, int> variants_;  // variant of each call
  std::map<std::pair<int, int>, Learner::Words>
      told_;  // words by call class and number of the comparison
  // By key of the call class.
  std::array<std::array<std::int64_t, InMemory::kWords>, kCallClasses> memory_{};
  std::map<std::pair<int, std::int64_t>, bool>
      looks_;  // by call class and call: whether the comparison was over
  bool taken_worker_ = false;
  bool met_challenger_ = false;
  std::set<int> sent_;
  std::string wrong_;
  bool forgotten_while_deferring_ = false;
};

inline bool Call::try_to_start() {
  const auto variant = world.next_variant(rank, call_class);
  if (variant) world.goes(rank, number, *variant);
  return variant.has_value();
}

// Tries all orders of events, each state once. run() says what is wrong in one of them; "":
// nothing.
class Search {
 public:
  Search(std::vector<Script> scripts, Fault fault) : Search(std::move(scripts), Setting{fault}) {}
  Search(std::vector<Script> scripts, const Setting& setting)
      : scripts_(std::move(scripts)), setting_(setting) {}

  std::string run() {
    look(replay());
    return wrong_;
  }
  std::size_t states() const { return seen_.size(); }
  bool has_forgotten_while_deferring() const { return forgotten_while_deferring_; }
  bool has_taken_worker() const { return taken_worker_; }
  bool has_met_challenger() const { return met_challenger_; }
  bool has_looked_again() const { return looked_again_; }

 private:
  std::unique_ptr<World> replay() const {
    auto world = std::make_unique<World>(scripts_, setting_);
    for (const int event : events_) world->happen(event);
    return world;
  }

  // Continues from this world, into which events_ have led.
  void look(std::unique_ptr<World> world) {
    if (!world->wrong().empty()) wrong_ = world->wrong();
    if (world->has_forgotten_while_deferring()) forgotten_while_deferring_ = true;
    if (world->has_taken_worker()) taken_worker_ = true;
    if (world->has_met_challenger()) met_challenger_ = true;
    if (world->has_looked_again()) looked_again_ = true;
    if (!wrong_.empty() || !seen_.insert(world->key()).second) return;
    std::vector<int> possible;
    for (int event = 0; event < world->events(); ++event)
      if (world->enabled(event)) possible.push_back(event);
    if (possible.empty() && !world->over()) wrong_ = "a standstill";
    // The last event happens in this very world, which nothing else needs any more.
    for (const int event : possible) {
      auto next = event == possible.back() ? std::move(world) : replay();
      next->happen(event);
      events_.push_back(event);
      look(std::move(next));
      events_.pop_back();
    }
  }

  const std::vector<Script> scripts_;
  const Setting setting_;
  std::vector<int> events_;
  std::set<std::string> seen_;
  std::string wrong_;
  bool forgotten_while_deferring_ = false;
  bool taken_worker_ = false;
  bool met_challenger_ = false;
  bool looked_again_ = false;
};

}  // namespace weft::agreement
