// The stages of a site: watching how it is called, trying ways in turns, settled on one of them
// with a look now and then at whether the program still does the same. Where nothing can be won, it
// rests, and is watched again later.
#include "select/learner.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <tuple>

namespace weft {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kWatched = 4, kWatchedLonger = 12;  // calls
// Rounds of each stage of trials. What is very slow is met twice, since one time may be bad luck: a
// program that has just begun does other things between its calls. What is slow is met three times.
constexpr int kRounds[] = {2, 1, 3, 3};
constexpr int kMostStages = 4, kStagesForAll = 2;
constexpr std::size_t kMostKept = 3;  // ways after these
constexpr std::uint64_t kLooked =
    8;  // calls, of each in flight, at which a settled site is looked at
constexpr std::uint64_t kFirstCheckOfKnown = 16;  // all of which are looked at
constexpr std::uint64_t kLeastBetweenChecks = 48, kMostBetweenChecks = 1 << 20;
constexpr std::int64_t kLeastBetweenChecks_ns = 100'000'000;
// A site that is called more often than this has nothing that could be hidden. It rests.
constexpr std::int64_t kLeastPeriod_ns = 20'000;
// Where a call comes around this soon, it takes another time after one that went another way: ranks
// run ahead of others, and caches are warm with what the way before used. So a slot is several
// calls, of which the first does not count.
constexpr std::int64_t kShortPeriod_ns = 100'000;
constexpr int kCallsOfShortSlot = 4;
// Of so many calls of a site at rest one is watched.
constexpr std::uint64_t kOneWatchedOf = 64;
// The longest rest takes about as long as this, and so many calls.
constexpr std::int64_t kLongestRest_ns = 20'000'000;
constexpr std::int64_t kLeastLongestRest = 1 << 11, kMostLongestRest = 1 << 14;
// Whether too many are in flight is seen in so many calls and the next one, though those that the
// library had begun before have not been counted.
constexpr std::uint64_t kWatchedSeveral = 2 * Learner::kMostInFlight;
// No way hangs on what a watch after a rest finds, so short calls need not wait for it.
constexpr std::uint64_t kDelayAfterRest = 32;
// Where some rank lags behind, the longest delay up to the next look.
constexpr std::uint64_t kMostDelay = 64;
constexpr int kMostCallsOfOthers = 64;

// Behind the slots of the words.
constexpr std::size_t kInFlightWord = Learner::kMostSlots, kBatchWord = kInFlightWord + 1,
                      kElapsedWord = kInFlightWord + 2, kElsewhereWord = kInFlightWord + 3,
                      kUnableWord = kInFlightWord + 4;

std::int64_t median_of(std::vector<std::int64_t> values) {
  std::erase(values, 0);
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

void TrialTurn::call_of(const Learner& site) {
  if (holder_ == site.number())
    calls_of_others_ = 0;
  else if (holder_ != 0 && ++calls_of_others_ > kMostCallsOfOthers)
    holder_ = 0;
}

bool TrialTurn::take(const Learner& site) {
  if (holder_ != 0 && holder_ != site.number()) return false;
  holder_ = site.number();
  calls_of_others_ = 0;
  return true;
}

bool TrialTurn::has(const Learner& site) const {
  return holder_ == site.number();
}

void TrialTurn::give_back(const Learner& site) {
  if (holder_ == site.number()) holder_ = 0;
}

Learner::Learner(std::size_t ways, int native, const Settings& settings, TrialBudget& budget)
    : number_(next_number()),
      native_(native),
      conditional_(settings.conditional),
      may_try_(settings.tries && !budget.is_none() && ways > 1),
      by_own_time_(settings.by_own_time),
      switches_(settings.switches),
      free_slots_(
          settings.has_free_slots ? std::max(kFreeSlots, kFreeOfEach * static_cast<int>(ways)) : 0),
      budget_(budget),
      random_state_(settings.seed),
      records_(std::min(ways, kMostWays)) {
  if (settings.known && !switches_) {
    if (settings.known->way == conditional_)
      known_ = settings.known;
    else
      std::tie(way_, period_ns_) = std::pair(settings.known->way, settings.known->period_ns);
  }
  if (switches_) way_ = static_cast<int>(random() % records_.size());
  if (way_ == conditional_) way_ = 0;
  settled_.way = way_;
  settled_.median_ns.resize(records_.size());
  settled_.median_ns[static_cast<std::size_t>(way_)] = period_ns_;
  if (!switches_ && !may_try_ && !known_)
    begin_stage(Stage::settled, kNever);
  else if (period_ns_ != 0)
    begin_known();
  else
    begin_stage(Stage::watching, switches_ ? 1 : kWatched);
}

// From the next call on, or after a rest of some calls; after so many more the ranks compare.
void Learner::begin_stage(Stage stage, std::uint64_t calls, std::uint64_t rest) {
  const auto delay = static_cast<std::uint64_t>(switches_ ? 1 : 2 * depth_);
  delay_ = rest > 0 ? kDelayAfterRest : delay;
  stage_ = stage;
  is_agreed_ = false;
  begins_at_ = calls_ + rest;
  compares_at_ = calls == kNever ? kNever : begins_at_ + calls;
  effective_at_ = calls == kNever ? kNever : compares_at_ + delay_;
  next_timed_ = begins_at_;
  if (stage == Stage::settled)
    next_timed_ =
        calls == kNever
            ? kNever
            : compares_at_ - std::min(calls, kLooked * static_cast<std::uint64_t>(depth_));
  most_in_flight_ = 0;
  words_ = {};
}

std::optional<Learner::Step> Learner::next(std::int64_t now_ns, int in_flight, TrialTurn& turn) {
  if (const auto way = next_at_once()) return Step{*way};
  if (calls_ == effective_at_ && !is_agreed_) return std::nullopt;
  turn.call_of(*this);
  note_time(now_ns, in_flight);
  if (calls_ == effective_at_) move_on(turn);
  const bool on_trial = stage_ == Stage::trying && calls_ < compares_at_;
  if (on_trial && !switches_ && !turn.has(*this)) try_again_later();
  if (stage_ == Stage::waiting) move_on(turn);
  Step step{way_, calls_ == compares_at_};
  if (stage_ == Stage::trying && calls_ < compares_at_) {
    step.way = order_[(calls_ - begins_at_) / static_cast<std::uint64_t>(slot_calls_)];
    ++calls_on_trial_;
  }
  if (step.compare) {
    tell(now_ns, turn);
    turn.give_back(*this);
  }
  ++calls_;
  return step;
}

// Of the call before, which ends with this one's beginning.
void Learner::note_time(std::int64_t now_ns, int in_flight) {
  if (last_ns_ != 0 && !by_own_time_ && counts_last_call()) add_time(now_ns - last_ns_);
  last_ns_ = now_ns;
  most_in_flight_ = std::max(most_in_flight_, in_flight + 1);
  if (in_flight == 0 && calls_ < compares_at_)
    words_[kBatchWord] = static_cast<std::int64_t>(calls_);
}

// The stage's first call of which the time counts.
std::uint64_t Learner::counts_from() const {
  return stage_ == Stage::settled ? next_timed_ : begins_at_;
}

bool Learner::counts_last_call() const {
  return calls_ > counts_from() && calls_ <= compares_at_;
}

// A site that is settled needs the mean only.
void Learner::add_time(std::int64_t ns) {
  const bool on_trial = stage_ == Stage::trying;
  const std::uint64_t in_slot = stage_ == Stage::settled ? kNever
                                : on_trial               ? static_cast<std::uint64_t>(slot_calls_)
                                                         : 1;
  const std::uint64_t call = calls_ - 1 - counts_from();
  const std::size_t slot = call / in_slot;
  if (on_trial && call % in_slot < static_cast<std::uint64_t>(slot_warm_ups_)) return;
  if (slot < kMostSlots) words_[slot] += std::max<std::int64_t>(ns, 1);
}

void Learner::tell(std::int64_t now_ns, const TrialTurn& turn) {
  words_[kInFlightWord] = most_in_flight_;
  words_[kElapsedWord] = budget_.elapsed_ns(now_ns);
  words_[kElsewhereWord] = budget_.spent_ns() - turn.cost_ns;
}

void Learner::agreed(const Words& greatest) {
  agreed_ = greatest;
  is_agreed_ = true;
}

// Up to that call, when calls begin does not matter.
void Learner::agreed_to_look_later() {
  delay_ = std::min(2 * delay_, kMostDelay);
  effective_at_ += delay_;
  next_timed_ = effective_at_;
}

void Learner::say_unable() {
  words_[kUnableWord] = 1;
}

void Learner::leave_out_conditional() {
  if (conditional_ >= 0 && agreed_[kUnableWord] > 0)
    records_[static_cast<std::size_t>(conditional_)].out = true;
}

// What was agreed on has its effect from the next call on.
void Learner::move_on(TrialTurn& turn) {
  if (calls_ == effective_at_) {
    leave_out_conditional();
    turn.elapsed_ns = agreed_[kElapsedWord];
    turn.cost_elsewhere_ns = agreed_[kElsewhereWord];
    if (switches_)
      after_ = Stage::waiting;
    else if (stage_ == Stage::watching)
      agreed_on_watch();
    else if (stage_ == Stage::trying)
      agreed_on_trials(turn);
    else
      agreed_on_check();
    if (after_ == Stage::settled) return begin_settled();
    if (after_ == Stage::watching) return begin_stage(Stage::watching, watched_, rest_);
    begin_stage(Stage::waiting, kNever);
  }
  // Trials begin with the first of the calls that are in flight together.
  const auto depth = static_cast<std::uint64_t>(depth_);
  const bool begins_batch = (calls_ - begins_batch_) % depth == 0;
  if (!switches_ && !begins_batch) return;
  if (stages_tried_ == 0) choose_slots();
  if (!may_try(turn)) return put_off();
  if (switches_ || turn.take(*this)) begin_trials(turn);
}

int Learner::rounds_of_next() const {
  return switches_ ? 2 : kRounds[stages_tried_];
}

// By the times known so far; at first, by what the first stage cost before the program changed.
std::int64_t Learner::cost_expected_ns() const {
  if (stages_tried_ == 0) return cost_of_first_stage_ns_ * slot_calls_;
  std::int64_t cost_ns = 0;
  for (std::size_t way = 0; way < records_.size(); ++way)
    if (!records_[way].out)
      cost_ns += std::max<std::int64_t>(median_ns(static_cast<int>(way)) - median_ns(way_), 0);
  return cost_ns * rounds_of_next() * slot_calls_;
}

// Rests on the number of the call and on what was agreed on, as all decisions do.
bool Learner::may_try(const TrialTurn& turn) const {
  const auto alive = static_cast<int>(
      std::count_if(records_.begin(), records_.end(), [](const Record& one) { return !one.out; }));
  if (switches_ || slots_tried_ + alive * rounds_of_next() <= free_slots_) return true;
  return budget_.allows(turn.cost_ns + turn.cost_elsewhere_ns + cost_expected_ns(),
                        turn.elapsed_ns);
}

// The site keeps to what it knows by now, and asks again when the ranks next compare.
void Learner::put_off() {
  if (stages_tried_ > 0) settle();
  is_put_off_ = true;
  if (calls_between_checks_ == 0) calls_between_checks_ = least_between_checks();
  begin_settled();
}

void Learner::choose_slots() {
  const bool is_short = !switches_ && depth_ == 1 && period_ns_ < kShortPeriod_ns;
  slot_calls_ = is_short ? kCallsOfShortSlot : depth_;
  slot_warm_ups_ = is_short ? 1 : 0;
}

void Learner::begin_trials(TrialTurn& turn) {
  const int rounds = rounds_of_next();
  std::vector<int> alive;
  for (std::size_t way = 0; way < records_.size(); ++way)
    if (!records_[way].out) alive.push_back(static_cast<int>(way));
  // They count from their beginning on, since they may be broken off.
  cost_expected_ns_ = cost_expected_ns();
  turn.cost_ns += cost_expected_ns_;
  budget_.spend(cost_expected_ns_);
  order_.clear();
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = alive.size(); i > 1; --i) std::swap(alive[i - 1], alive[random() % i]);
    if (order_.size() + alive.size() <= kMostSlots)
      order_.insert(order_.end(), alive.begin(), alive.end());
  }
  if (switches_) {
    order_.resize(1 + random() % 3);
    way_ = alive[random() % alive.size()];
  }
  ++stages_tried_;
  slots_tried_ += static_cast<int>(order_.size());
  begin_stage(Stage::trying,
              static_cast<std::uint64_t>(order_.size()) * static_cast<std::uint64_t>(slot_calls_));
}

// Another site has taken the turn, since this one was not called for long.
void Learner::try_again_later() {
  --stages_tried_;
  begin_stage(Stage::waiting, kNever);
}

void Learner::agreed_on_watch() {
  if (known_) return settle_on_known();
  const std::int64_t depth = agreed_[kInFlightWord];
  const std::vector<std::int64_t> periods(agreed_.begin(), agreed_.begin() + kMostSlots);
  period_ns_ = median_of(periods);
  const std::uint64_t watched = compares_at_ - begins_at_;
  const std::int64_t mean_ns = std::accumulate(periods.begin(), periods.end(), std::int64_t{}) /
                               static_cast<std::int64_t>(watched);
  const bool several = depth >= static_cast<std::int64_t>(kWatched) - 1;
  depth_ = static_cast<int>(std::clamp<std::int64_t>(depth, 1, kMostInFlight));
  begins_batch_ = static_cast<std::uint64_t>(agreed_[kBatchWord]);
  if (depth > kMostInFlight) return rest(several, mean_ns);
  // Perhaps there are more, and the time after the last of them has not been seen.
  if (several && watched <= kWatched) return watch_again(kWatchedLonger);
  if (mean_ns < kLeastPeriod_ns) return rest(several, mean_ns);
  rests_ = 0;
  after_ = Stage::waiting;
}

void Learner::watch_again(std::uint64_t calls) {
  after_ = Stage::watching;
  watched_ = calls;
  rest_ = 0;
}

// Each rest is twice as long as the one before, up to where a comparison costs next to nothing.
// several: calls have been seen in flight together.
void Learner::rest(bool several, std::int64_t mean_ns) {
  constexpr int kMostDoublings = 8;
  const auto longest = static_cast<std::uint64_t>(std::clamp<std::int64_t>(
      kLongestRest_ns / std::max<std::int64_t>(mean_ns, 1), kLeastLongestRest, kMostLongestRest));
  watch_again(several ? kWatchedSeveral : kWatched);
  rest_ = std::min(kOneWatchedOf * watched_ << std::min(rests_++, kMostDoublings), longest);
}

void Learner::agreed_on_trials(TrialTurn& turn) {
  const std::size_t slots = order_.size();
  std::vector<std::int64_t> of_way(records_.size());
  std::size_t in_round = 0;
  const auto alive = static_cast<std::size_t>(
      std::count_if(records_.begin(), records_.end(), [](const Record& one) { return !one.out; }));
  for (std::size_t slot = 0; slot < slots; ++slot) {
    of_way[static_cast<std::size_t>(order_[slot])] = agreed_[slot] / counted_calls();
    if (++in_round < alive) continue;
    for (std::size_t way = 0; way < records_.size(); ++way)
      records_[way].each_ns.push_back(of_way[way]);
    of_way.assign(records_.size(), 0);
    in_round = 0;
  }
  count_cost(turn);
  const int best = choose();
  if (stages_tried_ <= kStagesForAll) drop_the_slow();
  const auto left =
      std::count_if(records_.begin(), records_.end(), [](const Record& one) { return !one.out; });
  after_ = Stage::waiting;
  way_ = preferred(best);
  if (left == 1 || stages_tried_ >= kMostStages) return settle();
  if (stages_tried_ < kMostStages - 1) return;
  // Only what may still win is tried once more.
  for (std::size_t way = 0; way < records_.size(); ++way)
    if (median_ns(static_cast<int>(way)) * 20 > median_ns(best) * 21) records_[way].out = true;
  const auto close =
      std::count_if(records_.begin(), records_.end(), [](const Record& one) { return !one.out; });
  if (close == 1) settle();
}

// Of the trials that are over, against the way in use before them.
void Learner::count_cost(TrialTurn& turn) {
  std::int64_t cost_ns = 0;
  for (std::size_t slot = 0; slot < order_.size(); ++slot)
    cost_ns += std::max<std::int64_t>(agreed_[slot] / counted_calls() - median_ns(way_), 0);
  if (stages_tried_ == 1) cost_of_first_stage_ns_ = cost_ns;
  cost_ns *= slot_calls_;
  trials_cost_ns_ += cost_ns;
  turn.cost_ns += cost_ns - cost_expected_ns_;
  budget_.spend(cost_ns - cost_expected_ns_);
}

void Learner::settle() {
  way_ = preferred(choose());
  period_ns_ = median_ns(way_);
  // What comes around in other times again and again is looked at less often.
  calls_between_checks_ =
      std::min(least_between_checks() << std::min(times_settled_, 6), kMostBetweenChecks);
  if (!is_put_off_) ++times_settled_;
  is_put_off_ = false;
  after_ = Stage::settled;
  settled_ = compared();
}

void Learner::begin_known() {
  begin_stage(Stage::settled, kFirstCheckOfKnown);
  next_timed_ = calls_;
}

// All ranks can take the conditional way, or it is as if nothing were known.
void Learner::settle_on_known() {
  const Known known = *known_;
  known_.reset();
  const bool is_able = !records_[static_cast<std::size_t>(conditional_)].out;
  if (!is_able && may_try_) return watch_again(kWatched);
  if (is_able) {
    way_ = settled_.way = known.way;
    period_ns_ = settled_.median_ns[static_cast<std::size_t>(way_)] = known.period_ns;
  }
  after_ = Stage::settled;
  calls_between_checks_ = may_try_ ? kFirstCheckOfKnown : kNever;
}

std::uint64_t Learner::least_between_checks() const {
  const std::int64_t calls = kLeastBetweenChecks_ns / std::max<std::int64_t>(period_ns_, 1);
  return static_cast<std::uint64_t>(
      std::clamp<std::int64_t>(calls, kLeastBetweenChecks, kMostBetweenChecks));
}

void Learner::begin_settled() {
  begin_stage(Stage::settled, calls_between_checks_);
}

// The program does something else if a call comes around in another time.
void Learner::agreed_on_check() {
  const std::int64_t now_ns = agreed_[0] / static_cast<std::int64_t>(compares_at_ - next_timed_);
  const std::int64_t most = std::max(now_ns, period_ns_), least = std::min(now_ns, period_ns_);
  after_ = Stage::settled;
  if (most * 10 <= least * 13) {
    const bool was_known = times_settled_ == 0;
    times_settled_ = std::max(times_settled_, 1);  // what was known holds
    if (calls_between_checks_ == 0 || was_known) calls_between_checks_ = least_between_checks();
    if (is_put_off_) after_ = Stage::waiting;
    return;
  }
  records_.assign(records_.size(), {});
  stages_tried_ = 0;
  is_put_off_ = false;
  depth_ = 1;
  watch_again(kWatched);
}

// By the least time of each. After two times what takes half as long again is out, but the
// library's own way and the rule's only if they take more than twice as long, and of blocking
// calls, whose single times say least, not at all. After three times only a few are left.
void Learner::drop_the_slow() {
  std::vector<std::int64_t> sorted;
  for (std::size_t way = 0; way < records_.size(); ++way)
    if (!records_[way].out) sorted.push_back(least_ns(static_cast<int>(way)));
  std::sort(sorted.begin(), sorted.end());
  const std::int64_t best = sorted.front();
  const std::int64_t last = sorted[std::min(kMostKept, sorted.size()) - 1];
  for (std::size_t i = 0; i < records_.size(); ++i) {
    const int way = static_cast<int>(i);
    const std::int64_t ns = least_ns(way);
    const bool is_safe = way == 0 || way == native_;
    if (stages_tried_ == 1 && is_safe && by_own_time_) continue;
    const bool is_slow =
        stages_tried_ == 1 ? ns * 2 > best * (is_safe ? 4 : 3) : ns > last || ns * 4 > best * 5;
    if (is_slow) records_[i].out = true;
  }
}

int Learner::choose() const {
  int best = 0;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    const int way = static_cast<int>(i);
    const bool is_first = records_[static_cast<std::size_t>(best)].out;
    if (!records_[i].out && (is_first || median_ns(way) < median_ns(best))) best = way;
  }
  return best;
}

// What is hardly slower stays the library's, or else as the rule says; and what another did not
// beat in two of three rounds.
int Learner::preferred(int best) const {
  const auto keeps = [&](int way, std::int64_t parts) {
    const std::int64_t ns = median_ns(way);
    if (ns == 0 || way == best) return ns > 0;
    const auto [won, rounds] = rounds_won(best, way);
    return ns * 100 <= median_ns(best) * (100 + parts) || won * 3 < rounds * 2;
  };
  if (native_ >= 0 && keeps(native_, 5)) return native_;
  return keeps(0, 1) ? 0 : best;
}

// Of the rounds in which both were tried.
std::pair<int, int> Learner::rounds_won(int way, int rival) const {
  const auto& own = records_[static_cast<std::size_t>(way)].each_ns;
  const auto& rivals = records_[static_cast<std::size_t>(rival)].each_ns;
  int won = 0, rounds = 0;
  for (std::size_t round = 0; round < std::min(own.size(), rivals.size()); ++round) {
    if (own[round] == 0 || rivals[round] == 0) continue;
    ++rounds;
    if (own[round] < rivals[round]) ++won;
  }
  return {won, rounds};
}

std::int64_t Learner::median_ns(int way) const {
  return median_of(records_[static_cast<std::size_t>(way)].each_ns);
}

std::int64_t Learner::least_ns(int way) const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max() / 8;
  for (const std::int64_t ns : records_[static_cast<std::size_t>(way)].each_ns)
    if (ns > 0) least = std::min(least, ns);
  return least;
}

int Learner::rival_of(int way) const {
  if (way != native_ && native_ >= 0) return native_;
  if (way != 0) return 0;
  int rival = 0;
  for (std::size_t i = 1; i < records_.size(); ++i) {
    const std::int64_t ns = median_ns(static_cast<int>(i));
    if (ns > 0 && (rival == 0 || ns < median_ns(rival))) rival = static_cast<int>(i);
  }
  return rival;
}

Learner::Found Learner::found() const {
  Found found = times_settled_ > 0 || calls_on_trial_ == 0 ? settled_ : compared();
  found.settled = times_settled_ > 0;
  found.calls = calls_;
  found.calls_on_trial = calls_on_trial_;
  found.trials_cost_ns = trials_cost_ns_;
  return found;
}

// The way taken now, and how it did against others.
Learner::Found Learner::compared() const {
  Found found;
  found.way = way_;
  for (std::size_t way = 0; way < records_.size(); ++way)
    found.median_ns.push_back(median_ns(static_cast<int>(way)));
  found.rival = rival_of(way_);
  std::tie(found.won, found.pairs) = rounds_won(way_, found.rival);
  return found;
}

// Steele, Lea, Flood, OOPSLA 2014 (SplitMix64).
std::uint64_t Learner::random() {
  std::uint64_t mixed = random_state_ += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return mixed ^ mixed >> 31;
}

}  // namespace weft
