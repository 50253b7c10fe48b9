// Learner: finds out while the program runs which variant the calls of one call class should take.
// A variant is a choice of engine and algorithm. The learner minimises the time from one call of
// the call class to the next, on the slowest rank, since the application's run time consists of
// these. For blocking calls it is the duration of the call, which is called a period as well; where
// all ranks wait for the last one, it is the duration on that rank. Source: Okuma and Nanri, toward
// adaptive selection (TCC); docs/inside/learning.md. It is separate from MPI because all ranks must
// take the same variant in the same call: a learner depends only on the number of the call and on
// times that the ranks have agreed on, and is tested without a clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "select/positions.h"
#include "select/trial_budget.h"
#include "select/trial_turn.h"

namespace weft {

class Learner {
 public:
  static constexpr std::size_t kMostVariants = 10;
  static constexpr int kMostInFlight = 8;  // at call classes with more of them nothing is tried
  static constexpr int kMostSlots = 32;
  // At least this many slots of a position, or this many of each variant, are tried whatever they
  // cost: otherwise short programs would learn nothing.
  static constexpr int kFreeSlots = 20, kFreeOfEach = 3;

  // The data that ranks exchange: of each word the maximum over all ranks is agreed on. Times are
  // in ns.
  using Words = std::array<std::int64_t, kMostSlots + 5>;

  struct Known {  // from an earlier run
    int variant = 0;
    std::int64_t period_ns = 0;
    int depth = 1;                            // so many calls were in flight together
    std::vector<std::int64_t> variants_ns{};  // of each variant; 0, or empty: not known
  };
  struct Settings {
    // The index of a variant that some rank may be unable to take, which the ranks find out in
    // their first comparison; -1 if there is none.
    int conditional = -1;
    std::uint64_t seed = 0;  // the same on all ranks
    // The results of earlier runs for each position of the cycle, the same on all ranks; empty if
    // there are none.
    std::vector<Known> known{};
    bool tries = true;         // else the variant is the known one, or the rule's
    bool by_own_time = false;  // a call takes what took() says
    // Set where no rank returns before all have begun. The least time over all ranks then counts:
    // in the rest of theirs the other ranks waited for a late one.
    bool by_least_time = false;
    bool has_free_slots = true;
    // A bit mask of the variants that are tried if calls follow each other very soon: those
    // progressed by callers, and the library's.
    std::uint32_t variants_of_short = 0;
    bool switches = false;  // for tests: another variant every few calls, whatever the times
  };

  // The first variant is the rule's. native: the index of the variant that leaves the call to the
  // library; -1 if there is none.
  Learner(std::size_t variants, int native, const Settings& settings, TrialBudget& budget);

  struct Step {
    int variant = 0;
    bool compare = false;  // the ranks begin to compare: each has words(), agreed() gets the result
  };
  // Returns the variant of the call class's next call, which began at now_ns while in_flight
  // earlier calls were incomplete. Returns nothing if the variant depends on a comparison that has
  // not completed on this rank. The state is then unchanged, and the caller must ask for this call
  // again before any later one.
  std::optional<Step> next(std::int64_t now_ns, int in_flight, TrialTurn& turn);
  // Does what next() does at a settled or resting call class where no time is needed and no trial
  // is under way. Returns nothing if next() must be called.
  std::optional<int> next_at_once() {
    const std::optional<int> variant = variant_at_once();
    if (variant) ++calls_;
    return variant;
  }
  // Returns the variant that next_at_once() would return, without counting a call.
  std::optional<int> variant_at_once() const {
    if (wants_time()) return std::nullopt;
    return positions_.variant_of(calls_);
  }

  // If by_own_time is set: wants_own_time() returns whether the last call that next() was asked for
  // is to be measured, and took() records its duration.
  bool wants_own_time() const { return by_own_time_ && counts_last_call(); }
  void took(std::int64_t ns) { add_time(ns); }

  const Words& words() const { return words_; }
  // Notes that this rank cannot take the conditional variant. Must be called before words() are
  // exchanged.
  void say_unable();
  void agreed(const Words& greatest);
  // Replaces agreed() after next() has returned nothing and some rank has not published its words
  // yet; all ranks must do so alike. The calls keep their variants until a later call looks again;
  // the delay doubles each time.
  void agreed_to_look_later();

  // The results so far at a position of the cycle, for reports.
  using Found = weft::Found;
  Found found(std::size_t position = 0) const;
  // Returns the length of the cycle in which the call class's calls repeat, for reports; 1 if they
  // are all alike.
  std::size_t cycle() const {
    if (switches_) return 1;
    return says_last_found() ? last_found_.size() : positions_.cycle();
  }
  // Returns, after next(), whether the number of calls in flight matters now, including the
  // library's.
  bool is_watching() const {
    if (stage_ == Stage::watching) return calls_ > begins_at_;
    return stage_ == Stage::settled && depth_ > 1 && calls_ > counts_from_ && calls_ < compares_at_;
  }
  // Returns whether the call class is neither settled nor resting, that is, tries variants or is
  // about to.
  bool is_learning() const { return stage_ != Stage::settled && wants_time(); }
  // Returns whether the last call's variant was on trial.
  bool was_on_trial() const { return calls_ > 0 && is_on_trial(calls_ - 1); }
  // Returns whether the variants in use were found, by this run or an earlier one; otherwise the
  // rule's is in use.
  bool has_result() const { return (times_settled_ > 0 || is_known_) && !was_in_vain_; }
  // Returns whether next() needs the time at which the next call begins.
  bool wants_time() const { return calls_ >= next_timed_; }
  // Returns whether calls follow each other so soon that nothing could be hidden behind them.
  bool is_very_short() const { return is_very_short_; }
  // Returns a number that is unique in this process, unlike the address, which may be reused.
  std::uint64_t number() const { return number_; }

 private:
  enum class Stage : std::uint8_t { watching, waiting, trying, settled };

  bool is_on_trial(std::uint64_t call) const;
  Position& on_trial() { return positions_[position_]; }
  void have_positions(const std::vector<std::int64_t>& period_ns);
  void have_any_positions();
  void have_known(const std::vector<Known>& known);
  std::uint64_t calls_together() const;

  void begin_stage(Stage stage, std::uint64_t calls, std::uint64_t rest = 0);
  int rounds_of_next(const Position& position) const;
  std::int64_t cost_expected_ns(const Position& position) const;
  std::int64_t cost_of_rival_ns(const Position& position, int rival) const;
  bool may_meet(const Position& position, int rival, const TrialTurn& turn) const;
  bool find_rival(const TrialTurn& turn);
  void compare_again_later();
  int left_out() const { return is_unable_ ? conditional_ : -1; }  // -1: no variant is
  bool is_free(int slots, const TrialTurn& turn) const;
  bool may_try(const Position& position, const TrialTurn& turn) const;
  bool find_position(const TrialTurn& turn);
  void begin_trials(TrialTurn& turn);
  void set_slots(Position& position) const;
  int counted_calls() const { return slot_own_calls_ - slot_warm_ups_; }
  void put_off();
  void begin_settled();
  void begin_known();
  std::uint64_t first_check_of_known() const;
  std::vector<Found> found_by_now() const;
  void settle_on_known();
  std::uint64_t calls_in(std::int64_t ns) const;
  void try_again_later(TrialTurn& turn);
  void move_on(TrialTurn& turn);
  void leave_out_conditional();
  void note_time(std::int64_t now_ns, int in_flight);
  bool counts_last_call() const;
  bool looks_at_each() const;
  std::int64_t looked_ns(std::size_t position) const;
  void add_time(std::int64_t ns);
  void turn_around(Words& words) const;
  void tell(std::int64_t now_ns, const TrialTurn& turn);
  void agreed_on_watch();
  void watch_again(std::uint64_t calls);
  void rest(bool several, std::int64_t mean_ns);
  void add_rounds(TriedVariants& tried) const;
  bool rests_on_one_call(const Position& position) const;
  void agreed_on_trials(TrialTurn& turn);
  void agreed_on_rival(TrialTurn& turn);
  std::int64_t count_cost(const TriedVariants& tried, TrialTurn& turn);
  void agreed_on_check(const TrialTurn& turn);
  bool says_last_found() const;
  std::int64_t won_since_found_ns() const;
  void have_found();
  bool is_shorter_than_tried() const;
  void learn_again();
  void choose_checks();
  void count_settled();
  std::uint64_t random();

  static constexpr std::uint64_t kNever = ~std::uint64_t{};
  static constexpr std::uint64_t kLeastBetweenChecks = 48;  // calls
  // A call class with a shorter period has nothing that could be hidden, and rests.
  static constexpr std::int64_t kLeastPeriod_ns = 20'000;
  // A call counts as at most so many times the least time of its variant, and a call on trial as at
  // most so many usual ones.
  static constexpr std::int64_t kMostOfLeast = 3, kMostOfUsual = 4;

  const std::uint64_t number_;
  const int conditional_;
  const bool may_try_;
  const bool by_own_time_;
  const bool by_least_time_;
  const bool switches_;
  const int free_slots_;
  const std::uint32_t variants_of_short_;
  TrialBudget& budget_;
  std::uint64_t random_state_;

  Positions positions_;                      // which are tried one after the other
  std::size_t position_ = 0;                 // that is on trial
  std::optional<std::vector<Known>> known_;  // until the ranks know that all can take it
  bool is_unable_ = false;                   // some rank: to take the conditional variant
  std::optional<TriedVariants> again_;   // the variant in use and a rival, while they are compared
  int rival_ = -1;                       // that one
  std::uint64_t compares_again_at_ = 0;  // call, or a check after that
  bool is_known_ = false;                // an earlier run has found the variants
  bool has_learnt_ = false;              // something was tried and settled on
  int slots_before_ = 0;                 // that were tried before the call class was watched again
  int in_a_row_ = 1;                     // a slot is so many times as long
  bool is_unchecked_ = false;            // since it has settled
  bool is_uneven_ = false;               // may have a cycle, which is looked for later
  bool looks_for_cycle_ = false;         // having settled without one
  bool is_very_short_ = false;           // the mean period that was watched
  bool is_put_off_ = false;              // settled before the last stage of trials
  std::int64_t cost_of_first_stage_ns_ = 0;  // the last time, by calls of which a slot has one
  std::int64_t cost_expected_ns_ = 0;        // of the trials under way
  int depth_ = 1;                            // so many calls are in flight together
  int slot_calls_ = 1;                       // so many make a slot, since the trials began
  int slot_own_calls_ = 1;                   // of these, those of the position
  int slot_warm_ups_ = 0;                    // of these, the first, which do not count
  std::uint64_t calls_between_checks_ = 0;
  std::uint64_t calls_before_check_ = ~std::uint64_t{};  // the next one, if that is sooner

  Stage stage_ = Stage::watching;
  Stage after_ = Stage::waiting;  // agreed on: what comes once the comparison has its effect
  bool is_agreed_ = false;
  std::uint64_t calls_ = 0;        // begun
  std::uint64_t begins_at_ = 0;    // the stage; later than now while the call class rests
  std::uint64_t counts_from_ = 0;  // the stage's first call of which the time counts
  std::uint64_t compares_at_ = 0;  // then the variant is the position's until
  std::uint64_t effective_at_ = 0;
  std::uint64_t delay_ = 0;  // up to then
  std::uint64_t next_timed_ = 0;
  std::vector<int> order_;          // of variants, by slot; in trials
  std::uint64_t watched_ = 0;       // calls, when it is watched again
  std::uint64_t rest_ = 0;          // calls before that
  bool was_in_vain_ = false;        // what was tried last
  int rests_ = 0;                   // one after the other
  std::uint64_t begins_batch_ = 0;  // a call with nothing in flight
  std::int64_t last_ns_ = 0;        // the call before; 0: not known
  int most_in_flight_ = 0;
  Words words_{};
  Words agreed_{};

  std::uint64_t calls_on_trial_ = 0;
  std::int64_t trials_cost_ns_ = 0;
  int times_settled_ = 0;
  std::vector<Found> last_found_;      // at each position; before that, what was known
  std::uint64_t found_at_ = 0;         // that call
  std::uint64_t on_trial_before_ = 0;  // of the calls before
  std::int64_t won_ns_ = 0;            // up to then
};

}  // namespace weft
