// Learner: finds out while the program runs which variant (engine and algorithm) the calls of one
// call class should use. It minimises the time from one call of the class to the next on the
// slowest rank, since the application's run time consists of these periods. For blocking calls the
// duration of the call counts instead; if all ranks wait for the one that arrives last, it is the
// duration on that rank. Source: Okuma and Nanri, toward adaptive selection (TCC);
// docs/inside/learning.md. The class is independent of MPI and is tested without a clock: all ranks
// must use the same variant in the same call, so the learner depends only on the number of the call
// and on times that the ranks have agreed on.
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
  static constexpr int kMostInFlight = 8;  // with more calls in flight together, nothing is tried
  static constexpr int kMostSlots = 32;
  // Numbers of trials that are made whatever they cost, since otherwise short programs would learn
  // nothing. kFreeSlots: number of slots (consecutive calls with one variant) per position of the
  // cycle of calls. kFreeOfEach: number of slots for each variant, if that is more.
  static constexpr int kFreeSlots = 20, kFreeOfEach = 3;

  // The numbers that ranks exchange (a comparison): they agree on the maximum of each one over all
  // ranks. Times are in nanoseconds.
  using Words = std::array<std::int64_t, kMostSlots + 5>;

  struct Known {  // the result of an earlier run at one position of the cycle of calls
    int variant = 0;
    std::int64_t period_ns = 0;
    int depth = 1;  // number of calls in flight together
    // Time of a call with each variant in ns; 0 or missing if unknown.
    std::vector<std::int64_t> variants_ns{};
  };
  struct Settings {
    // The index of a variant that some rank may be unable to use; -1 if there is none. The ranks
    // find out in their first exchange of times.
    int conditional = -1;
    std::uint64_t seed = 0;  // seed of random numbers; equal on all ranks
    // The results of earlier runs, one for each position of the cycle of calls; empty if there are
    // none. Equal on all ranks.
    std::vector<Known> known{};
    // Whether variants are tried; otherwise calls use the known variant or the static rule's.
    bool tries = true;
    // Whether a call's duration (took()) counts, and not the time to the next call.
    bool by_own_time = false;
    // True if no rank returns from such a call before all have entered it. Then the minimum of each
    // time over all ranks counts, since the times of the other ranks include waiting for the rank
    // that arrives last.
    bool by_least_time = false;
    bool has_free_slots = true;
    // A bit mask of the variants that are tried if calls follow each other within kLeastPeriod_ns:
    // the MPI library's own call, and those that application threads progress.
    std::uint32_t variants_of_short = 0;
    bool switches = false;  // true in tests: the variant changes every few calls
    // True if comparisons cost next to nothing, because the ranks share memory. A settled class
    // then follows a change of the machine's state within a few hundred calls.
    bool checks_often = false;
    // With checks_often, number of calls until a second check confirms a change that a check has
    // found. It must exceed the calls after which interrupt() tells that the calls are others.
    std::uint64_t confirming = 16;
  };

  // variants: their number; variant 0 is the static rule's. native: the index of the variant that
  // leaves the call to the MPI library; -1 if there is none.
  Learner(std::size_t variants, int native, const Settings& settings, TrialBudget& budget);

  struct Step {
    int variant = 0;
    // True if the ranks begin an exchange of times at this call: each gives words(), and agreed()
    // must be called with the maxima.
    bool compare = false;
  };
  // Returns the variant for the class's next call, which began at now_ns while in_flight earlier
  // calls were incomplete. Returns nothing if the variant depends on an exchange of times that has
  // not completed on this rank. Nothing has changed then, and next() must be called again for this
  // call before any later one.
  std::optional<Step> next(std::int64_t now_ns, int in_flight, TrialTurn& turn);
  // Does what next() does if this call need not be timed, because the class has settled or rests.
  // Returns nothing if next() must be called.
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

  // wants_own_time() returns whether the duration of the last call passed to next() must be
  // measured, and took() records that duration. Both are for Settings::by_own_time.
  bool wants_own_time() const { return by_own_time_ && counts_last_call(); }
  void took(std::int64_t ns) { add_time(ns); }

  const Words& words() const { return words_; }
  // Records that this rank cannot use the variant Settings::conditional. Must be called before
  // words() are exchanged.
  void say_unable();
  void agreed(const Words& greatest);
  // Must be called, on all ranks before the same call, when calls that may take another time come
  // between this class's. What has been measured in the present stage is dropped, and the stage
  // begins again with the class's next call.
  void interrupt(TrialTurn& turn);
  // Must be called in place of agreed(), on all ranks alike, if next() has returned nothing and
  // some rank has not given its numbers yet. The calls keep their variants, and a later one looks
  // for the result again; the delay doubles each time.
  void agreed_to_look_later();

  // The results so far at one position of the cycle of calls, for reports.
  using Found = weft::Found;
  Found found(std::size_t position = 0) const;
  // Returns the length of the cycle in which the class's calls repeat, for reports; 1 if all calls
  // are alike.
  std::size_t cycle() const {
    if (switches_) return 1;
    return says_last_found() ? last_found_.size() : positions_.cycle();
  }
  // Returns whether next() must be told how many calls are in flight, including those that the MPI
  // library carries out.
  bool is_watching() const {
    if (stage_ == Stage::watching) return calls_ > begins_at_;
    return stage_ == Stage::settled && depth_ > 1 && calls_ > counts_from_ && calls_ < compares_at_;
  }
  // Returns whether the call class tries variants, or is watched before it does. It is false if the
  // class has settled on a variant or rests.
  bool is_learning() const { return stage_ != Stage::settled && wants_time(); }
  // Returns whether the last call was made to try a variant.
  bool was_on_trial() const { return calls_ > 0 && is_on_trial(calls_ - 1); }
  // Returns whether this run or an earlier one has found the variants in use. Otherwise the calls
  // use the variant of the static rule.
  bool has_result() const { return (times_settled_ > 0 || is_known_) && !was_in_vain_; }
  // Returns whether the ranks exchange times at the next call.
  bool is_about_to_compare() const { return calls_ == compares_at_; }
  // Returns whether next() must be told the time at which the next call begins.
  bool wants_time() const { return calls_ >= next_timed_; }
  // Returns whether calls follow each other within kLeastPeriod_ns, so that there is no computation
  // behind which communication could be hidden.
  bool is_very_short() const { return is_very_short_; }
  // Returns a number that no other Learner in this process ever has. (An address may be reused.)
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
  std::int64_t cost_of_challenger_ns(const Position& position, int challenger) const;
  bool may_compare(const Position& position, int challenger, const TrialTurn& turn) const;
  bool find_challenger(const TrialTurn& turn);
  void compare_again_later();
  // Returns the index of a variant that some rank cannot use; -1 if there is none.
  int left_out() const { return is_unable_ ? conditional_ : -1; }
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
  void begin_stage_again(TrialTurn& turn);
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
  bool has_moved();
  bool says_last_found() const;
  std::int64_t won_since_found_ns() const;
  void have_found();
  bool is_shorter_than_tried() const;
  void learn_again();
  void choose_checks();
  void count_settled();
  std::uint64_t random();

  static constexpr std::uint64_t kNever = ~std::uint64_t{};
  // Least number of calls between two checks of the variant in use.
  static constexpr std::uint64_t kLeastBetweenChecks = 48;
  // If the period is shorter than this, there is no time to hide communication in, so the call
  // class rests before anything is tried.
  static constexpr std::int64_t kLeastPeriod_ns = 20'000;
  // Limits of a call's time that counts, since longer times have causes other than the variant:
  // kMostOfLeast times the least time of the variant and, in trials, kMostOfUsual usual periods.
  static constexpr std::int64_t kMostOfLeast = 3, kMostOfUsual = 4;

  const std::uint64_t number_;
  const int conditional_;
  const bool may_try_;
  const bool by_own_time_;
  const bool by_least_time_;
  const bool switches_;
  const bool checks_often_;
  const std::uint64_t confirming_;
  const int free_slots_;
  const std::uint32_t variants_of_short_;
  TrialBudget& budget_;
  std::uint64_t random_state_;

  // A program may repeat several calls of this class in a cycle. Each call of the cycle is a
  // position with a variant of its own. Variants are tried at one position after the other.
  Positions positions_;
  std::size_t position_ = 0;  // index of the position at which variants are being tried
  // Results of earlier runs, until the ranks know whether all can use the variant `conditional_`.
  std::optional<std::vector<Known>> known_;
  bool is_unable_ = false;  // whether some rank cannot use the variant `conditional_`
  std::optional<TriedVariants>
      // The variant in use and the one that challenges it, while they are compared; otherwise
      // nullopt.
      again_;
  int challenger_ = -1;  // index of the variant that challenges the one in use; -1 if there is none
  // Number of the call from which the variant in use may be compared with a challenger again.
  std::uint64_t compares_again_at_ = 0;
  bool is_known_ = false;        // an earlier run has found the variants in use
  bool has_learnt_ = false;      // variants were tried and one was settled on
  int slots_before_ = 0;         // slots (consecutive calls of one variant) of earlier trials
  int in_a_row_ = 1;             // factor by which slots of trials are lengthened
  bool is_unchecked_ = false;    // no check has been made since the class settled
  bool may_have_moved_ = false;  // the last check found a change, which the next one must confirm
  bool is_uneven_ = false;       // the calls may have a cycle, which is looked for later
  // The class is watched to find a cycle, after settling without one.
  bool looks_for_cycle_ = false;
  bool is_very_short_ = false;  // whether the measured mean period is below kLeastPeriod_ns
  bool is_put_off_ = false;     // whether the class has settled before its last stage of trials
  // Cost of the first stage of the latest trials, in ns per counted call of a slot: time beyond
  // that of the variant in use.
  std::int64_t cost_of_first_stage_ns_ = 0;
  std::int64_t cost_expected_ns_ = 0;  // expected cost of the current trials in ns
  int times_broken_off_ = 0;           // number of times that trials were broken off
  int depth_ = 1;                      // number of calls in flight together
  // Number of calls in a slot, in which the position on trial keeps one variant.
  int slot_calls_ = 1;
  int slot_own_calls_ = 1;  // number of calls of a slot that are at the position on trial
  // Number of the first calls among slot_own_calls_ whose times do not count.
  int slot_warm_ups_ = 0;
  std::uint64_t calls_between_checks_ = 0;
  // Number of calls from settling to the next check; counts only if it is less than
  // calls_between_checks_.
  std::uint64_t calls_before_check_ = ~std::uint64_t{};

  Stage stage_ = Stage::watching;
  Stage after_ = Stage::waiting;  // stage that follows when the last exchange of times takes effect
  bool is_agreed_ = false;
  // The exchange of times that is under way says nothing, since interrupt() has been called.
  bool is_void_ = false;
  std::uint64_t calls_ = 0;  // number of calls so far
  // Number of the first call of the current stage. It lies in the future while the class rests.
  std::uint64_t begins_at_ = 0;
  // Number of the first call in the current stage whose time counts.
  std::uint64_t counts_from_ = 0;
  // Number of the call at which the ranks exchange times. From this call to effective_at_ the
  // variant in use is taken, and none is tried.
  std::uint64_t compares_at_ = 0;
  std::uint64_t effective_at_ = 0;
  std::uint64_t delay_ = 0;  // number of calls from an exchange of times until it takes effect
  std::uint64_t next_timed_ = 0;
  // Variant of each slot (consecutive calls) in the current trials.
  std::vector<int> order_;
  // Number of calls to watch in the next stage in which the class is watched.
  std::uint64_t watched_ = 0;
  // Number of calls that are not timed before the class is watched again.
  std::uint64_t rest_ = 0;
  // Whether the last trials meant nothing, so that the static rule's variant is in use.
  bool was_in_vain_ = false;
  int rests_ = 0;                   // number of rests so far without a trial in between
  std::uint64_t begins_batch_ = 0;  // number of a call that began when no other was in flight
  std::int64_t last_ns_ = 0;        // time at which the previous call began, in ns; 0 if unknown
  int most_in_flight_ = 0;
  Words words_{};
  Words agreed_{};

  std::uint64_t calls_on_trial_ = 0;
  std::int64_t trials_cost_ns_ = 0;
  int times_settled_ = 0;
  // Result at each position of the cycle of calls. Before this run has one, it is that of earlier
  // runs.
  std::vector<Found> last_found_;
  std::uint64_t found_at_ = 0;  // number of the call at which the present result was found
  // Number of calls in trials before the present result was found.
  std::uint64_t on_trial_before_ = 0;
  std::int64_t won_ns_ = 0;  // ns saved before the present result was found
};

}  // namespace weft
