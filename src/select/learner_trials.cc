// Decides at which position of a cycle of calls variants are tried next and what that may cost,
// evaluates the trials, and later compares the variant in use with a challenger.
#include <algorithm>
#include <utility>

#include "select/cycle.h"
#include "select/learner.h"

namespace weft {
namespace {

// The number of rounds in each stage of trials. In a round each remaining variant is tried once.
// Variants that prove very slow in the first stage are tried twice, since a single time may be an
// accident: a program that has just begun does other things between its calls. Those that prove
// slow in the second stage are tried three times. If only the time of the rank that arrives last
// counts, the first stage may have a single round.
constexpr int kRounds[] = {2, 1, 3, 3};
constexpr int kMostStages = 4, kStagesForAll = 2;
// Number of rounds in which the variant in use is compared with a challenger. All but the first
// take place only if the challenger wins the first. The next comparison follows after as many calls
// as there were until this one, but within kMostBeforeChallenger_ns. A comparison may exceed the
// time budget only if the challenger was at most three tenths slower.
constexpr int kRoundsWithChallenger = 5;
constexpr std::int64_t kMostBeforeChallenger_ns = 10'000'000'000;

}  // namespace

// Selects the position of the cycle with the longest period among those at which more can be tried
// within the time budget. Returns false if there is none.
bool Learner::find_position(const TrialTurn& turn) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < positions_.cycle(); ++i) {
    if (positions_[i].is_done || !may_try(positions_[i], turn)) continue;
    if (!found || positions_[i].period_ns > positions_[*found].period_ns) found = i;
  }
  position_ = found.value_or(position_);
  return found.has_value();
}

int Learner::rounds_of_next(const Position& position) const {
  if (again_)
    return again_->rounds_won(challenger_, position.variant).second == 0
               ? 1
               : kRoundsWithChallenger - 1;
  if (switches_) return 2;
  // If a slot has several calls, one round suffices, since their time is no accident.
  if (by_least_time_ && position.stages == 0 && position.slot_calls > 1) return 1;
  return kRounds[position.stages];
}

std::int64_t Learner::cost_of_challenger_ns(const Position& position, int challenger) const {
  return std::max<std::int64_t>(position.ns_of(challenger) - position.period_ns, 0) *
         position.slot_calls;
}

// Returns whether the time budget allows a comparison of the position's variant with a challenger:
// its first round or, later, all remaining ones. If the challenger was at most three tenths slower,
// the budget may be exceeded while free slots are left for both variants.
bool Learner::may_compare(const Position& position, int challenger, const TrialTurn& turn) const {
  const bool is_close = position.ns_of(challenger) * 10 < position.period_ns * 13;
  const int left = again_ ? kRoundsWithChallenger - 1 : kRoundsWithChallenger;
  const int slots = slots_before_ + position.slots + 2 * left;
  if (is_close && is_free(slots, turn)) return true;
  const std::int64_t cost_ns = cost_of_challenger_ns(position, challenger) * (again_ ? left : 1);
  return budget_.allows(turn.cost_ns + turn.cost_elsewhere_ns + cost_ns, turn.elapsed_ns);
}

// Selects the next position whose variant can be compared with another one (the challenger).
// Returns false if there is none. Must be called after a check that found no change of the program.
bool Learner::find_challenger(const TrialTurn& turn) {
  if (!may_try_ || calls_ < compares_again_at_) return false;
  for (std::size_t i = 1; i <= positions_.cycle(); ++i) {
    const std::size_t next = (position_ + i) % positions_.cycle();
    const int challenger = positions_.challenger_of(positions_[next], left_out());
    if (challenger < 0 || !may_compare(positions_[next], challenger, turn)) continue;
    position_ = next;
    challenger_ = challenger;
    again_ = positions_.only(on_trial().variant, challenger_);
    return true;
  }
  return false;
}

void Learner::compare_again_later() {
  again_.reset();
  compares_again_at_ =
      calls_ + std::min(std::max(calls_, kLeastBetweenChecks), calls_in(kMostBeforeChallenger_ns));
}

// Estimates the cost of the position's next trials, in ns, from the times known so far. Before the
// first stage it is estimated from the first stage before the program changed.
std::int64_t Learner::cost_expected_ns(const Position& position) const {
  const int calls = position.slot_calls;
  const TriedVariants& tried = position.tried;
  if (again_) return cost_of_challenger_ns(position, challenger_) * rounds_of_next(position);
  // For short periods, a cost that was measured with longer ones means little. So each call is
  // assumed to cost its whole period.
  if (position.stages == 0 && is_very_short_)
    return position.period_ns * tried.left() * rounds_of_next(position) * calls;
  if (position.stages == 0) return cost_of_first_stage_ns_ * calls;
  std::int64_t cost_ns = 0;
  for (int variant = 0; variant < static_cast<int>(tried.variants()); ++variant)
    if (!tried.is_out(variant))
      cost_ns +=
          std::max<std::int64_t>(tried.median_ns(variant) - tried.median_ns(position.variant), 0);
  return cost_ns * rounds_of_next(position) * calls;
}

// Returns whether a position may have `slots` slots (consecutive calls with one variant) in all,
// whatever they cost.
bool Learner::is_free(int slots, const TrialTurn& turn) const {
  return !is_very_short_ && slots <= free_slots_ &&
         budget_.has_free_slots(turn.cost_elsewhere_ns, turn.elapsed_ns);
}

// Returns whether the time budget allows the position's next trials. All ranks get the same answer,
// since it depends only on the number of the call and on times that they have agreed on.
bool Learner::may_try(const Position& position, const TrialTurn& turn) const {
  const int slots = position.slots + position.tried.left() * rounds_of_next(position);
  if (switches_ || is_free(slots_before_ + slots, turn)) return true;
  return budget_.allows(turn.cost_ns + turn.cost_elsewhere_ns + cost_expected_ns(position),
                        turn.elapsed_ns);
}

// Stops the trials for now, since the time budget does not allow more. The calls use the best
// variant known, and the class tries to continue when its ranks next exchange times.
void Learner::put_off() {
  bool was_tried = false;
  for (Position& position : positions_) {
    if (position.stages == 0) continue;
    was_tried = true;
    position.settle();
  }
  if (was_tried)
    count_settled();
  else
    choose_checks();
  is_put_off_ = true;
  begin_settled();
}

void Learner::begin_trials(TrialTurn& turn) {
  if (switches_) have_any_positions();
  Position& position = on_trial();
  const int rounds = rounds_of_next(position);
  const TriedVariants& tried = again_ ? *again_ : position.tried;
  std::vector<int> alive;
  for (int variant = 0; variant < static_cast<int>(tried.variants()); ++variant)
    if (!tried.is_out(variant)) alive.push_back(variant);
  slot_own_calls_ = position.slot_calls;
  slot_warm_ups_ = position.slot_warm_ups;
  slot_calls_ = slot_own_calls_ * static_cast<int>(positions_.cycle());
  // The whole expected cost is counted from the beginning, and corrected if the trials are broken
  // off.
  cost_expected_ns_ = cost_expected_ns(position);
  turn.cost_ns += cost_expected_ns_;
  budget_.spend(cost_expected_ns_);
  order_.clear();
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = alive.size(); i > 1; --i) std::swap(alive[i - 1], alive[random() % i]);
    if (order_.size() + alive.size() <= kMostSlots)
      order_.insert(order_.end(), alive.begin(), alive.end());
  }
  if (switches_) order_.resize(positions_.cycle() == 1 ? 1 + random() % 3 : 1);
  if (!again_) ++position.stages;
  position.slots += static_cast<int>(order_.size());
  begin_stage(Stage::trying,
              static_cast<std::uint64_t>(order_.size()) * static_cast<std::uint64_t>(slot_calls_));
}

// Breaks the trials off, because calls of other classes came between. Another class may have taken
// the right to try variants. Slots that were not begun do not count. The first time, those that
// were begun do not count either.
void Learner::try_again_later(TrialTurn& turn) {
  const auto tried = static_cast<std::int64_t>(std::min(calls_, compares_at_) - begins_at_);
  const auto all = static_cast<std::int64_t>(compares_at_ - begins_at_);
  // The cost of a first stage is unknown. Each of its calls is assumed to have cost its period,
  // since trials that are always broken off would never end.
  const bool is_unknown = !again_ && on_trial().stages == 1 && cost_expected_ns_ == 0;
  const std::int64_t cost_of_call_ns = is_unknown ? on_trial().period_ns : cost_expected_ns_ / all;
  const std::int64_t cost_ns = cost_of_call_ns * tried;
  trials_cost_ns_ += cost_ns;
  turn.cost_ns += cost_ns - cost_expected_ns_;
  budget_.spend(cost_ns - cost_expected_ns_);
  const bool is_first = times_broken_off_++ == 0;
  on_trial().slots -= static_cast<int>(is_first ? all / slot_calls_ : (all - tried) / slot_calls_);
  if (again_) {
    compare_again_later();
    return begin_settled();
  }
  --on_trial().stages;
  begin_stage(Stage::waiting, kNever);
}

void Learner::add_rounds(TriedVariants& tried) const {
  std::vector<std::int64_t> of_variant(tried.variants());
  int in_round = 0;
  const int left = tried.left();
  for (std::size_t slot = 0; slot < order_.size(); ++slot) {
    of_variant[static_cast<std::size_t>(order_[slot])] = agreed_[slot] / counted_calls();
    if (++in_round < left) continue;
    tried.add_round(of_variant);
    of_variant.assign(tried.variants(), 0);
    in_round = 0;
  }
}

// Returns whether each variant was measured by a single call, which a disturbance of the machine
// may have slowed.
bool Learner::rests_on_one_call(const Position& position) const {
  return position.stages == 1 && counted_calls() == 1 &&
         static_cast<int>(order_.size()) == position.tried.left();
}

void Learner::agreed_on_trials(TrialTurn& turn) {
  if (again_) return agreed_on_rival(turn);
  Position& position = on_trial();
  TriedVariants& tried = position.tried;
  add_rounds(tried);
  const std::int64_t cost_ns = count_cost(tried, turn);
  const auto positions_tried =
      std::count_if(positions_.begin(), positions_.end(),
                    [](const Position& position) { return position.stages > 0; });
  // If several positions were tried, their first stage counts with the cost of the most expensive
  // one.
  if (position.stages == 1)
    cost_of_first_stage_ns_ =
        positions_tried == 1 ? cost_ns : std::max(cost_of_first_stage_ns_, cost_ns);
  position.variant = tried.preferred();
  after_ = Stage::waiting;
  const bool are_all_kept = rests_on_one_call(position) && may_try(position, turn);
  if (position.stages <= kStagesForAll && !are_all_kept) tried.drop_the_slow(position.stages);
  // The last stage tries only those variants that may still win.
  const bool is_next_the_last = position.stages == kMostStages - 1;
  if (is_next_the_last && tried.left() > 1) tried.drop_the_distant();
  if (tried.left() > 1 && position.stages < kMostStages) return;
  position.is_done = true;
  position.settle();
  if (!positions_.is_all_done()) return;
  positions_.merge_alike();
  position_ = 0;
  count_settled();
  was_in_vain_ = is_shorter_than_tried();
  if (was_in_vain_) {
    slots_before_ += positions_.slots_tried();
    for (Position& position : positions_) position.variant = 0;
    have_found();
    learn_again();
  } else if (std::exchange(is_uneven_, false)) {
    looks_for_cycle_ = true;
    watch_again(kWatchedForCycle);
  }
}

// Evaluates a comparison of the variant in use with a challenger, and keeps the challenger's new
// time as its expected cost. If the challenger clearly wins, the class learns again.
void Learner::agreed_on_rival(TrialTurn& turn) {
  Position& position = on_trial();
  add_rounds(*again_);
  count_cost(*again_, turn);
  const auto [won, rounds] = again_->rounds_won(challenger_, position.variant);
  // After a single round the challenger's time is limited, since a delay of the program may have
  // caused it.
  const std::int64_t known_ns = position.ns_of(challenger_);
  const std::int64_t took_ns = again_->median_ns(challenger_);
  position.note(challenger_,
                rounds == 1 && known_ns > 0 ? std::min(took_ns, kMostOfLeast * known_ns) : took_ns);
  after_ = Stage::waiting;
  if (rounds == 1 && won == 1 && may_compare(position, challenger_, turn)) return;
  after_ = Stage::settled;
  const bool is_beaten = rounds > 1 && again_->is_beaten(position.variant);
  compare_again_later();
  if (!is_beaten) return;
  if (has_learnt_) slots_before_ += positions_.slots_tried();
  learn_again();
}

// Counts what the completed trials have cost: their time beyond that of the variant in use. Returns
// it in ns per counted call of a slot. Times far above the least one of the same variant have other
// causes and are cut off.
std::int64_t Learner::count_cost(const TriedVariants& tried, TrialTurn& turn) {
  const std::int64_t usual_ns = tried.median_ns(on_trial().variant);
  std::int64_t cost_ns = 0;
  for (std::size_t slot = 0; slot < order_.size(); ++slot) {
    const std::int64_t known_ns = again_ ? on_trial().ns_of(order_[slot]) : 0;
    const std::int64_t least_ns = tried.least_ns(order_[slot]);
    const std::int64_t most_ns =
        kMostOfLeast * (known_ns > 0 ? std::min(least_ns, known_ns) : least_ns);
    const std::int64_t ns = std::min(agreed_[slot] / counted_calls(), most_ns);
    cost_ns += std::max<std::int64_t>(ns - usual_ns, 0);
  }
  const std::int64_t of_all_ns = cost_ns * slot_own_calls_;
  trials_cost_ns_ += of_all_ns;
  turn.cost_ns += of_all_ns - cost_expected_ns_;
  budget_.spend(of_all_ns - cost_expected_ns_);
  return cost_ns;
}

// Returns whether the calls have become much shorter since they were watched. Those that were
// watched may have been the first calls of the program, so the trials mean nothing.
bool Learner::is_shorter_than_tried() const {
  return !is_very_short_ && positions_.mean_period_ns() * 2 < kLeastPeriod_ns;
}

}  // namespace weft
