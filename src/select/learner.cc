// Implements the stages of a call class (calls of one kind, about which engine `auto` learns). Its
// calls are first watched to see how often they come. Then they try variants (engine and algorithm)
// one after the other (learner_trials.cc), and settle on one of them. From then on some calls are
// timed now and then, to check whether the program still behaves the same. If nothing can be won,
// the class rests: its calls are not timed until it is watched again.
#include "select/learner.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "select/cycle.h"

namespace weft {
namespace {

// Numbers of calls that are timed when a call class is watched: the first time, and when that was
// not enough.
constexpr std::uint64_t kWatched = 4, kWatchedLonger = 12;
// Number of calls of a settled call class that are timed in a check, multiplied by the number of
// calls in flight together.
constexpr std::uint64_t kLooked = 8;
// Number of calls in one check (as kLooked) of a call class whose calls follow each other within
// kLeastPeriod_ns.
constexpr std::uint64_t kLookedOfShort = 32;
// Number of calls in the first check of a variant that an earlier run of the program found. All of
// these calls are timed.
constexpr std::uint64_t kFirstCheckOfKnown = 16;
// Least length of the first check of such a variant, in cycles of calls or in batches of calls in
// flight together.
constexpr std::uint64_t kLeastTogether = 4;
constexpr std::uint64_t kMostBetweenChecks = 1 << 20;
constexpr std::int64_t kLeastBetweenChecks_ns = 100'000'000;
// Time from settling on a variant to the first check. The time before each further check is four
// times as long.
constexpr std::int64_t kFirstCheck_ns = 1'000'000;
// Time and least number of calls between two checks of a class with Settings::checks_often.
constexpr std::int64_t kOftenChecked_ns = 400'000;
constexpr std::int64_t kLeastOftenChecked = 64, kMostOftenChecked = 2048;
// Number of rests after which a call class whose calls follow each other within kLeastPeriod_ns
// tries variants that need no thread.
constexpr int kRestsBeforeTrials = 3;
// If the period is shorter than this, several consecutive calls (a slot) use the same variant in
// trials. The first call after a change of variant takes longer, since ranks drift apart and caches
// hold the data of the previous variant; so the first quarter of a slot does not count.
constexpr std::int64_t kShortPeriod_ns = 100'000;
constexpr int kCallsOfShortSlot = 4;
// Number of consecutive calls with the same variant in trials (a slot) if the collective waits for
// all ranks. Only the time of the rank that arrives last counts then, and a variant that releases a
// rank late shortens the next call's time and not its own. So only the second call counts: the same
// variant has then determined who arrives last.
constexpr int kCallsOfSlotByLeastTime = 2;
// Limit of in_a_row_, the factor by which slots (consecutive calls with one variant in trials) are
// lengthened. The factor is raised fourfold if a variant takes another time after the trials than
// in them, where variants changed more often.
constexpr int kMostInARow = 16;
// Length of a slot (consecutive calls with one variant in trials) if the period is below
// kLeastPeriod_ns. The two constants below limit its number of calls.
constexpr std::int64_t kShortestSlot_ns = 200'000;
constexpr std::int64_t kLeastCallsOfSlot = 12, kMostCallsOfSlot = 64;
// While a call class rests, at most one in this many of its calls is timed.
constexpr std::uint64_t kOneWatchedOf = 64;
// Length of the longest rest. The constants below limit its number of calls.
constexpr std::int64_t kLongestRest_ns = 20'000'000;
constexpr std::int64_t kLeastLongestRest = 1 << 11, kMostLongestRest = 1 << 14;
// Number of calls to watch if several are in flight together. It is large enough to show whether
// more are in flight than kMostInFlight, although calls that the MPI library began earlier are not
// counted.
constexpr std::uint64_t kWatchedSeveral = 2 * Learner::kMostInFlight;
// Number of calls from an exchange of times after a rest until its result takes effect. No decision
// waits for that result, so short calls need not be delayed.
constexpr std::uint64_t kDelayAfterRest = 32;
// The most calls until the ranks look again for the result of an exchange of times that some rank
// has delayed.
constexpr std::uint64_t kMostDelay = 64;

// Indices of the numbers that the ranks exchange. The times of the slots come first.
constexpr std::size_t kInFlightWord = Learner::kMostSlots, kBatchWord = kInFlightWord + 1,
                      kElapsedWord = kInFlightWord + 2, kElsewhereWord = kInFlightWord + 3,
                      kUnableWord = kInFlightWord + 4;

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Learner::Learner(std::size_t variants, int native, const Settings& settings, TrialBudget& budget)
    : number_(next_number()),
      conditional_(settings.conditional),
      may_try_(settings.tries && !budget.is_none() && variants > 1),
      by_own_time_(settings.by_own_time),
      by_least_time_(settings.by_least_time),
      switches_(settings.switches),
      checks_often_(settings.checks_often),
      confirming_(settings.confirming),
      free_slots_(settings.has_free_slots
                      ? std::max(kFreeSlots, kFreeOfEach * static_cast<int>(variants))
                      : 0),
      variants_of_short_(settings.variants_of_short),
      budget_(budget),
      random_state_(settings.seed),
      positions_(std::min(variants, kMostVariants), native, settings.by_own_time) {
  if (!settings.known.empty() && !switches_) {
    const bool is_conditional =
        std::any_of(settings.known.begin(), settings.known.end(),
                    [&](const Known& known) { return known.variant == conditional_; });
    if (is_conditional)
      known_ = settings.known;
    else
      have_known(settings.known);
  }
  if (switches_) have_any_positions();
  if (last_found_.empty()) last_found_ = found_by_now();
  if (!switches_ && !may_try_ && !known_)
    begin_stage(Stage::settled, kNever);
  else if (positions_.mean_period_ns() != 0)
    begin_known();
  else
    begin_stage(Stage::watching, switches_ ? 1 : kWatched);
}

// Sets the positions of the cycle of calls, one for each period. Nothing has been tried at them.
// Each keeps the variant that is in use at the nearest period.
void Learner::have_positions(const std::vector<std::int64_t>& period_ns) {
  positions_.renew(period_ns);
  if (is_unable_) positions_.leave_out(conditional_);
  for (Position& position : positions_) set_slots(position);
  position_ = 0;
  is_put_off_ = false;
}

// Sets how many consecutive calls of this position use one variant in trials (a slot), and how many
// of these do not count. Both depend on the position's measured period.
void Learner::set_slots(Position& position) const {
  const std::int64_t ns = position.period_ns;
  position.slot_calls = depth_;
  if (switches_ || depth_ > 1 || ns == 0) return;
  if (is_very_short_)
    position.slot_calls =
        static_cast<int>(std::clamp(kShortestSlot_ns / ns, kLeastCallsOfSlot, kMostCallsOfSlot));
  else if (ns < kShortPeriod_ns)
    position.slot_calls = kCallsOfShortSlot;
  else if (by_least_time_)
    position.slot_calls = kCallsOfSlotByLeastTime;
  const bool is_pair = position.slot_calls == kCallsOfSlotByLeastTime;
  position.slot_calls *= in_a_row_;
  position.slot_warm_ups = is_pair ? in_a_row_ : position.slot_calls / 4;
}

// Assumes, in tests, that the calls of the class repeat in a cycle of one or two calls (positions),
// and takes a random variant for each position.
void Learner::have_any_positions() {
  have_positions(std::vector<std::int64_t>(1 + random() % 2));
  position_ = random() % positions_.cycle();
  for (Position& position : positions_) {
    const int variant = static_cast<int>(random() % position.tried.variants());
    position.variant = variant == conditional_ ? 0 : variant;
  }
}

void Learner::have_known(const std::vector<Known>& known) {
  is_known_ = true;
  depth_ = known.size() > 1 ? 1 : std::clamp(known.front().depth, 1, kMostInFlight);
  have_positions(std::vector<std::int64_t>(known.size()));
  for (std::size_t i = 0; i < known.size(); ++i) {
    positions_[i].variant = known[i].variant;
    positions_[i].period_ns = known[i].period_ns;
    positions_[i].other_ns = known[i].variants_ns;
  }
  have_found();
  is_very_short_ = positions_.mean_period_ns() < kLeastPeriod_ns;
  for (Position& position : positions_) set_slots(position);
}

// Returns the number of calls that trials must keep together: the calls in flight together, or
// those of one cycle.
std::uint64_t Learner::calls_together() const {
  return positions_.cycle() > 1 ? positions_.cycle() : static_cast<std::uint64_t>(depth_);
}

bool Learner::is_on_trial(std::uint64_t call) const {
  return stage_ == Stage::trying && call < compares_at_ && positions_.of(call) == position_;
}

// Begins a stage with the next call, or after `rest` calls. `calls` calls after its beginning the
// ranks exchange times.
void Learner::begin_stage(Stage stage, std::uint64_t calls, std::uint64_t rest) {
  const auto delay = static_cast<std::uint64_t>(switches_ ? 1 : 2 * depth_);
  delay_ = rest > 0 ? kDelayAfterRest : delay;
  stage_ = stage;
  is_agreed_ = false;
  begins_at_ = calls_ + rest;
  compares_at_ = calls == kNever ? kNever : begins_at_ + calls;
  effective_at_ = calls == kNever ? kNever : compares_at_ + delay_;
  counts_from_ = begins_at_;
  if (stage == Stage::settled && calls == kNever) {
    counts_from_ = kNever;
  } else if (stage == Stage::settled) {
    const std::uint64_t each = is_very_short_ && !checks_often_ ? kLookedOfShort : kLooked;
    const std::uint64_t looked = std::min(calls, each * calls_together());
    counts_from_ = compares_at_ - looked / calls_together() * calls_together();
  }
  next_timed_ = counts_from_;
  most_in_flight_ = 0;
  words_ = {};
}

std::optional<Learner::Step> Learner::next(std::int64_t now_ns, int in_flight, TrialTurn& turn) {
  if (const auto variant = next_at_once()) return Step{*variant};
  if (calls_ == effective_at_ && !is_agreed_) return std::nullopt;
  turn.call_of(*this);
  note_time(now_ns, in_flight);
  if (calls_ == effective_at_) move_on(turn);
  const bool tries = stage_ == Stage::trying && calls_ < compares_at_;
  if (tries && !switches_ && !turn.has(*this)) try_again_later(turn);
  if (stage_ == Stage::waiting) move_on(turn);
  Step step{positions_.variant_of(calls_), calls_ == compares_at_};
  if (is_on_trial(calls_)) {
    step.variant = order_[(calls_ - begins_at_) / static_cast<std::uint64_t>(slot_calls_)];
    ++calls_on_trial_;
  }
  if (step.compare) {
    tell(now_ns, turn);
    turn.give_back(*this);
  }
  ++calls_;
  return step;
}

// Records the time of the previous call, which ends where this one begins. in_flight: number of
// earlier calls that are not complete.
void Learner::note_time(std::int64_t now_ns, int in_flight) {
  if (last_ns_ != 0 && !by_own_time_ && counts_last_call()) add_time(now_ns - last_ns_);
  last_ns_ = now_ns;
  most_in_flight_ = std::max(most_in_flight_, in_flight + 1);
  if (in_flight == 0 && calls_ < compares_at_)
    words_[kBatchWord] = static_cast<std::int64_t>(calls_);
}

bool Learner::counts_last_call() const {
  return calls_ > counts_from_ && calls_ <= compares_at_;
}

// Returns whether the calls of a check are long and few enough for each call, or each batch of
// calls in flight together, to be timed separately. The median of these times ignores a short
// interruption of the program, such as writing a file. Otherwise only the sum of the times is kept.
bool Learner::looks_at_each() const {
  return (checks_often_ || positions_.mean_period_ns() >= kShortPeriod_ns) &&
         compares_at_ - counts_from_ <= kMostSlots * static_cast<std::uint64_t>(depth_);
}

std::int64_t Learner::looked_ns(std::size_t position) const {
  const std::uint64_t calls = compares_at_ - counts_from_;
  if (!looks_at_each())
    return agreed_[position] / static_cast<std::int64_t>(calls / positions_.cycle());
  std::vector<std::int64_t> each;
  for (std::uint64_t batch = 0; batch < calls / static_cast<std::uint64_t>(depth_); ++batch)
    if (positions_.of(counts_from_ + batch) == position) each.push_back(agreed_[batch] / depth_);
  return median_of(std::move(each));
}

void Learner::add_time(std::int64_t ns) {
  const std::uint64_t last = calls_ - 1, call = last - counts_from_;
  std::size_t slot = call;
  if (stage_ == Stage::settled)
    slot = looks_at_each() ? call / static_cast<std::uint64_t>(depth_) : positions_.of(last);
  if (stage_ == Stage::trying) {
    if (positions_.of(last) != position_) return;
    const auto in_slot = static_cast<std::uint64_t>(slot_calls_);
    slot = call / in_slot;
    const std::uint64_t own_call = call % in_slot / positions_.cycle();
    if (own_call < static_cast<std::uint64_t>(slot_warm_ups_)) return;
    // A period is cut off at a few usual ones, since a variant does not cause the time that the
    // program spends elsewhere between two calls. The time of a whole batch of calls in flight
    // together may appear in one call.
    const std::int64_t usual_ns = on_trial().period_ns * depth_;
    if (usual_ns > 0) ns = std::min(ns, kMostOfUsual * usual_ns);
  }
  if (slot < kMostSlots) words_[slot] += std::max<std::int64_t>(ns, 1);
}

// Negates the times if their minimum over all ranks counts, since the ranks agree on the maximum of
// each number.
void Learner::turn_around(Words& words) const {
  if (!by_least_time_) return;
  for (std::size_t slot = 0; slot < kMostSlots; ++slot) words[slot] = -words[slot];
}

void Learner::tell(std::int64_t now_ns, const TrialTurn& turn) {
  turn_around(words_);
  words_[kInFlightWord] = most_in_flight_;
  words_[kElapsedWord] = budget_.elapsed_ns(now_ns);
  words_[kElsewhereWord] = budget_.spent_ns() - turn.cost_ns;
}

void Learner::agreed(const Words& greatest) {
  agreed_ = greatest;
  turn_around(agreed_);
  is_agreed_ = true;
}

// Delays the effect of an exchange of times whose result is not known on all ranks. Until the ranks
// look again, no call is timed.
void Learner::agreed_to_look_later() {
  delay_ = std::min(2 * delay_, kMostDelay);
  effective_at_ += delay_;
  next_timed_ = effective_at_;
}

void Learner::say_unable() {
  words_[kUnableWord] = 1;
}

void Learner::leave_out_conditional() {
  is_unable_ = conditional_ >= 0 && agreed_[kUnableWord] > 0;
  if (is_unable_) positions_.leave_out(conditional_);
}

// Applies what the ranks have agreed on in the last exchange of times, from the next call on.
void Learner::move_on(TrialTurn& turn) {
  if (calls_ == effective_at_) {
    leave_out_conditional();
    turn.elapsed_ns = agreed_[kElapsedWord];
    turn.cost_elsewhere_ns = agreed_[kElsewhereWord];
    if (stage_ != Stage::trying) begins_batch_ = static_cast<std::uint64_t>(agreed_[kBatchWord]);
    if (std::exchange(is_void_, false) && !switches_) return begin_stage_again(turn);
    if (switches_)
      after_ = Stage::waiting;
    else if (stage_ == Stage::watching)
      agreed_on_watch();
    else if (stage_ == Stage::trying)
      agreed_on_trials(turn);
    else
      agreed_on_check(turn);
    if (after_ == Stage::settled) return begin_settled();
    if (after_ == Stage::watching) return begin_stage(Stage::watching, watched_, rest_);
    begin_stage(Stage::waiting, kNever);
  }
  const std::uint64_t from = positions_.cycle() > 1 ? 0 : begins_batch_;
  if (!switches_ && (calls_ - from) % calls_together() != 0) return;
  if (!again_ && !find_position(turn)) return put_off();
  if (switches_ || turn.take(*this)) begin_trials(turn);
}

void Learner::interrupt(TrialTurn& turn) {
  last_ns_ = 0;
  const bool is_telling = calls_ > compares_at_;
  if (is_telling)
    is_void_ = true;
  else if (calls_ > counts_from_)
    begin_stage_again(turn);
}

// Begins the present stage again, since what was measured in it says nothing.
void Learner::begin_stage_again(TrialTurn& turn) {
  may_have_moved_ = false;
  if (stage_ == Stage::watching) return begin_stage(stage_, compares_at_ - begins_at_);
  if (stage_ == Stage::trying) return try_again_later(turn);
  if (stage_ != Stage::settled) return;
  // Without any result of this run, the first check of an earlier one's begins again.
  calls_between_checks_ == 0 ? begin_known() : begin_settled();
}

void Learner::agreed_on_watch() {
  if (known_) return settle_on_known();
  const std::int64_t depth = agreed_[kInFlightWord];
  const auto watched = static_cast<std::ptrdiff_t>(compares_at_ - begins_at_);
  const std::vector<std::int64_t> periods(agreed_.begin(), agreed_.begin() + watched);
  // The first period is left out of the mean, since a deferred call may have waited in it.
  const std::int64_t mean_ns =
      std::accumulate(periods.begin() + 1, periods.end(), std::int64_t{}) / (watched - 1);
  const bool several = depth >= static_cast<std::int64_t>(kWatched) - 1;
  const bool is_first_watch = watched <= static_cast<std::ptrdiff_t>(kWatched);
  depth_ = static_cast<int>(std::clamp<std::int64_t>(depth, 1, kMostInFlight));
  if (depth > kMostInFlight) return rest(several, mean_ns);
  // If calls overlap, the class is watched again: more of them may be in flight than were seen,
  // since the time after the last watched call is unknown.
  if (several && is_first_watch) return watch_again(kWatchedLonger);
  const bool may_have_cycle = depth_ == 1 && mean_ns >= kLeastPeriod_ns;
  const std::size_t cycle = may_have_cycle ? cycle_in(periods, begins_at_) : 1;
  if (std::exchange(looks_for_cycle_, false) && cycle == 1) {
    after_ = Stage::settled;
    return;
  }
  is_very_short_ = mean_ns < kLeastPeriod_ns;
  // A call class that has not settled yet is not watched for longer only because its periods
  // differ, which may be noise.
  const bool is_uneven = may_have_cycle && is_first_watch && may_be_cycle(periods);
  if (is_uneven && (times_settled_ > 0 || looks_like_turns(periods)))
    return watch_again(kWatchedForCycle);
  is_uneven_ = is_uneven;
  // A single period between calls that are in flight together has no meaning, so only the mean is
  // used.
  have_positions(depth_ > 1 ? std::vector{mean_ns} : medians_in_cycle(periods, begins_at_, cycle));
  if (is_very_short_ && (depth_ > 1 || rests_ < kRestsBeforeTrials)) return rest(several, mean_ns);
  // Nothing is tried at a position with so short a period, since it leaves no time to hide
  // communication in.
  for (Position& position : positions_)
    position.is_done = positions_.cycle() > 1 && position.period_ns < kLeastPeriod_ns;
  for (int variant = 0; is_very_short_ && variant < static_cast<int>(on_trial().tried.variants());
       ++variant)
    if ((variants_of_short_ >> variant & 1) == 0 && variant != on_trial().variant)
      on_trial().tried.leave_out(variant);
  if (positions_.is_all_done() || on_trial().tried.left() < 2) return rest(several, mean_ns);
  rests_ = 0;
  after_ = Stage::waiting;
}

void Learner::watch_again(std::uint64_t calls) {
  after_ = Stage::watching;
  watched_ = calls;
  rest_ = 0;
}

// Lets the call class rest, that is, neither times its calls nor tries variants, for twice as long
// as last time. The longest rest is such that an exchange of times costs next to nothing. several:
// whether calls were in flight together.
void Learner::rest(bool several, std::int64_t mean_ns) {
  constexpr int kMostDoublings = 8;
  const auto longest = static_cast<std::uint64_t>(std::clamp<std::int64_t>(
      kLongestRest_ns / std::max<std::int64_t>(mean_ns, 1), kLeastLongestRest, kMostLongestRest));
  watch_again(several ? kWatchedSeveral : kWatched);
  looks_for_cycle_ = false;
  if (positions_.cycle() > 1) have_positions({mean_ns});
  rest_ = std::min(kOneWatchedOf * watched_ << std::min(rests_++, kMostDoublings), longest);
}

// Sets the number of calls after which the learner checks again whether the variant in use is still
// the best. It doubles each time that trials have ended with a choice, up to 64 times the least. It
// is at most kMostBetweenChecks, or kMostLongestRest if calls follow each other within
// kLeastPeriod_ns.
void Learner::choose_checks() {
  const std::uint64_t most =
      is_very_short_ ? static_cast<std::uint64_t>(kMostLongestRest) : kMostBetweenChecks;
  calls_between_checks_ =
      std::min(calls_in(kLeastBetweenChecks_ns) << std::min(times_settled_, 6), most);
}

void Learner::count_settled() {
  won_ns_ += won_since_found_ns();
  choose_checks();
  if (!is_put_off_ || times_settled_ == 0) {
    ++times_settled_;
    is_unchecked_ = true;
    calls_before_check_ = calls_in(kFirstCheck_ns);
  }
  is_put_off_ = false;
  has_learnt_ = true;
  was_in_vain_ = false;
  compare_again_later();
  after_ = Stage::settled;
  have_found();
}

void Learner::begin_known() {
  begin_stage(Stage::settled, first_check_of_known());
  next_timed_ = counts_from_ = calls_;
}

// Returns the number of calls in the first check of a variant that an earlier run found. It is a
// whole number of cycles, or of batches of calls in flight together.
std::uint64_t Learner::first_check_of_known() const {
  return std::max(kFirstCheckOfKnown / calls_together(), kLeastTogether) * calls_together();
}

// Uses the results of earlier runs, or discards them if some rank cannot use the variant
// `conditional_`.
void Learner::settle_on_known() {
  const std::vector<Known> known = std::move(*known_);
  known_.reset();
  if (is_unable_ && may_try_) return watch_again(kWatched);
  if (!is_unable_) have_known(known);
  after_ = Stage::settled;
  calls_between_checks_ = may_try_ ? first_check_of_known() : kNever;
}

std::uint64_t Learner::calls_in(std::int64_t ns) const {
  const std::int64_t calls = ns / std::max<std::int64_t>(positions_.mean_period_ns(), 1);
  return static_cast<std::uint64_t>(
      std::clamp<std::int64_t>(calls, kLeastBetweenChecks, kMostBetweenChecks));
}

void Learner::begin_settled() {
  std::uint64_t calls = std::min(calls_between_checks_, calls_before_check_);
  if (checks_often_ && may_try_) {
    const std::int64_t period_ns = std::max<std::int64_t>(positions_.mean_period_ns(), 1);
    const auto often = static_cast<std::uint64_t>(
        std::clamp(kOftenChecked_ns / period_ns, kLeastOftenChecked, kMostOftenChecked));
    calls = may_have_moved_ ? confirming_ : std::min(calls, often);
  }
  begin_stage(Stage::settled, calls);
}

// Returns whether the period of the class's calls has changed, according to a check. If checks come
// often, the next one must confirm it, because many checks meet a disturbance now and then.
bool Learner::has_moved() {
  bool moved = false;
  for (std::size_t i = 0; i < positions_.cycle(); ++i)
    moved = positions_.has_moved(i, looked_ns(i)) || moved;
  if (!checks_often_) return moved;
  const bool is_confirmed = moved && may_have_moved_;
  may_have_moved_ = moved && !is_confirmed;
  return is_confirmed;
}

// Evaluates a check of the variant in use. If the period of the class's calls has changed, the
// program has, and the class learns again.
void Learner::agreed_on_check(const TrialTurn& turn) {
  after_ = Stage::settled;
  const bool moved = has_moved();
  if (may_have_moved_) return;
  const bool is_first = std::exchange(is_unchecked_, false);
  if (!moved) {
    if (calls_before_check_ < kMostBetweenChecks) calls_before_check_ *= 4;
    const bool was_known = times_settled_ == 0 && !is_put_off_;
    if (was_known) times_settled_ = 1;  // the check has confirmed the result of an earlier run
    if (calls_between_checks_ == 0 || was_known)
      calls_between_checks_ = calls_in(kLeastBetweenChecks_ns);
    if (is_put_off_ || find_challenger(turn)) after_ = Stage::waiting;
    return;
  }
  const bool was_misled = is_first && depth_ == 1 && in_a_row_ < kMostInARow;
  if (was_misled) in_a_row_ *= 4;
  // If the trials were misleading for the first time, they do not use up any of the free slots.
  if (!was_misled || in_a_row_ > 4) slots_before_ += positions_.slots_tried();
  learn_again();
}

void Learner::learn_again() {
  depth_ = 1;
  is_put_off_ = false;
  if (checks_often_) rests_ = kRestsBeforeTrials;
  watch_again(kWatched);
}

// Returns whether reports show the last result. They do not while the class's first trials run,
// when there is none.
bool Learner::says_last_found() const {
  return times_settled_ > 0 || calls_on_trial_ == 0;
}

std::vector<Found> Learner::found_by_now() const {
  std::vector<Found> found = positions_.found();
  for (Found& one : found) one.depth = depth_;
  return found;
}

void Learner::have_found() {
  last_found_ = found_by_now();
  found_at_ = calls_;
  on_trial_before_ = calls_on_trial_;
}

// Returns how many nanoseconds were saved since the present result was found, compared with the
// static rule's variant. It uses the times of both variants in trials. It counts all calls outside
// trials, also those made while other variants are tried again.
std::int64_t Learner::won_since_found_ns() const {
  if (times_settled_ == 0) return 0;
  const std::uint64_t calls = calls_ - found_at_ - (calls_on_trial_ - on_trial_before_);
  std::int64_t won_ns = 0;
  for (const Found& found : last_found_) {
    const std::int64_t rules_ns = found.median_ns.front();
    if (rules_ns > 0) won_ns += rules_ns - found.median_ns[static_cast<std::size_t>(found.variant)];
  }
  return won_ns * static_cast<std::int64_t>(calls / last_found_.size());
}

Learner::Found Learner::found(std::size_t position) const {
  Found found = says_last_found() ? last_found_[position] : found_by_now()[position];
  found.settled = times_settled_ > 0 && !was_in_vain_;
  found.is_learnt = has_learnt_;
  found.calls = calls_;
  found.calls_on_trial = calls_on_trial_;
  found.trials_cost_ns = trials_cost_ns_;
  found.won_ns = won_ns_ + won_since_found_ns();
  return found;
}

// Returns a random number by SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
std::uint64_t Learner::random() {
  std::uint64_t mixed = random_state_ += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return mixed ^ mixed >> 31;
}

}  // namespace weft
