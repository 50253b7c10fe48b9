// Measures candidates for a persistent collective. Rank 0 reads the results of earlier runs from
// the file of plans. The ranks agree on the times after each measurement. A result in doubt is
// measured again in the next run, until two runs confirm the choice of the fixed rule, or
// kMostDoubts runs have measured.
#include "runtime/trial/tuning.h"

#include <algorithm>
#include <bit>

#include "base/clock.h"
#include "library/handles.h"
#include "runtime/job/runtime.h"
#include "runtime/trial/call_on_trial.h"
#include "schedule/node_edges.h"
#include "select/candidates.h"
#include "select/trials.h"
#include "transport/mpi/kernels.h"

namespace weft {
namespace {

using Source = PlanRecord::Source;

// A time that exceeds any time limit. A rank that cannot take part reports it, which ends the
// measurements on all ranks.
constexpr std::int64_t kNever_ns = INT64_MAX / 4;

// The largest number of runs that measure a plan. Without a limit measuring might never end, if the
// machine is never quiet, or if another candidate is fastest each time. In a quarter of all
// processes a candidate was fastest that is slower in the next process, perhaps because its pages
// lie differently in the caches.
constexpr int kMostDoubts = 4;

// The words that the ranks exchange at a time. The result of each is the maximum over all ranks.
using Facts = std::array<std::int64_t, 5>;
constexpr std::int64_t kSaysNothing = INT64_MIN;

class Tuner {
 public:
  Tuner(Runtime& runtime, InternalCollective& internal_collective, const Call& call, Kernel kernel,
        const Schedule& by_rule, bool at_once, PlanRecord& record)
      : runtime_(runtime),
        internal_collective_(internal_collective),
        call_(call),
        kernel_(kernel),
        shape_(by_rule.shape),
        at_once_(at_once),
        record_(record),
        by_rule_{&algorithm_of(by_rule), by_rule.tuning} {}

  // Returns the candidate (algorithm and parameters) that all ranks use, after measuring candidates
  // if necessary.
  Candidate choose() {
    if (is_first()) key_ = key();
    if (!meet()) return chosen_;
    const Shape trial = shape_on_trial(shape_);
    Candidates candidates(trial, by_rule_, at_once_, runtime_.config.iterations_at_a_time);
    // The winner of earlier runs is measured right after the choice of the fixed rule, so that it
    // is measured even if there is little time.
    candidates.bring_forward(chosen_);
    measure(trial, candidates);
    return chosen_;
  }

 private:
  // Rank 0's knowledge from earlier runs. nothing: no result. not_measured: earlier runs had too
  // little time, so the choice of the fixed rule is used. doubtful: a result that must be measured
  // again. certain: a result that is used as it is.
  enum class Known : std::int64_t { nothing, not_measured, doubtful, certain };

  bool is_first() const { return shape_.rank == 0; }

  std::string key() const {
    const auto bytes = static_cast<std::uint64_t>(record_.bytes);
    return plan_key({"weft " WEFT_VERSION, Runtime::platform(), ranks_words(),
                     kind_name(shape_.kind),
                     "<= " + std::to_string(std::bit_ceil(bytes)) + " bytes", record_.operation,
                     at_once_ ? "at once" : "any"});
  }

  std::string ranks_words() const {
    std::string words = std::to_string(shape_.size) + " ranks";
    if (shape_.domains) words += " in " + std::to_string(shape_.domains->count()) + " domains";
    if (shape_.nodes) words += " on " + layout_words(*shape_.nodes);
    if (shape_.edges) words += ", " + std::to_string(shape_.edges->all_edges) + " edges";
    if (!shape_.nodes && !shape_.on_one_node)
      words += runtime_.config.node_memory ? " on as many nodes" : " by messages";
    return words;
  }

  // Returns a hash of those arguments of the call that must be equal on all ranks.
  std::int64_t call_number() const {
    const std::size_t operation = std::hash<std::string>{}(record_.operation);
    const auto words = {static_cast<std::size_t>(shape_.kind),
                        static_cast<std::size_t>(shape_.root),
                        static_cast<std::size_t>(record_.bytes), operation};
    std::size_t number = 0;
    for (const std::size_t word : words) number = number * 1'099'511'628'211u + word + 1;
    return static_cast<std::int64_t>(number);
  }

  static Known known_of(const MeasuredPlan& plan) {
    if (plan.candidates.empty()) return Known::not_measured;
    return plan.doubts > 0 ? Known::doubtful : Known::certain;
  }

  // Returns the maximum of each word over all ranks; nullopt if ranks have made different calls.
  std::optional<Facts> greatest(const Facts& own) {
    const std::int64_t number = call_number();
    // All ranks' numbers are equal exactly if the maxima of the number and of its bitwise
    // complement are complements of each other.
    InternalCollective::Words words{number, ~number};
    std::copy(own.begin(), own.end(), words.begin() + 2);
    const auto all = internal_collective_.greatest(words);
    if (!all || (*all)[0] != number || (*all)[1] != ~number) return std::nullopt;
    Facts facts;
    std::copy(all->begin() + 2, all->end(), facts.begin());
    return facts;
  }

  // Returns as words what rank 0 knows. On other ranks returns the least value, so that the maximum
  // is what rank 0 knows.
  Facts what_is_known() {
    if (!is_first()) return {kSaysNothing, kSaysNothing, kSaysNothing, kSaysNothing, kSaysNothing};
    before_ = runtime_.plans.find(key_);
    if (!before_) return {static_cast<std::int64_t>(Known::nothing)};
    const Tuning& tuning = before_->tuning;
    const auto found = find_candidate(shape_, before_->algorithm, tuning);
    if (!found) {
      // This candidate is unknown: another version of Weft has written it, or the file is damaged
      before_.reset();
      return {static_cast<std::int64_t>(Known::nothing)};
    }
    return {static_cast<std::int64_t>(known_of(*before_)), found->algorithm - algorithms().data(),
            tuning.chunk_bytes, tuning.radix, tuning.radix_across};
  }

  // Waits for all ranks, and tells them what rank 0 knows from earlier runs. Returns whether
  // candidates must be measured.
  bool meet() {
    const auto facts = greatest(what_is_known());
    began_ns_ = now_ns();
    record_.why = "ranks make different calls";
    if (!facts) return false;
    const auto [told, algorithm, chunk_bytes, radix, radix_across] = *facts;
    const auto known = static_cast<Known>(told);
    if (known == Known::nothing) return true;
    chosen_ = {&algorithms()[static_cast<std::size_t>(algorithm)],
               {.chunk_bytes = chunk_bytes,
                .radix = static_cast<int>(radix),
                .radix_across = static_cast<int>(radix_across)}};
    was_measured_ = known != Known::not_measured;
    record_.source = was_measured_ ? Source::cache : Source::rule;
    record_.why = was_measured_ ? "measured before" : "not measured: the budget was too short";
    if (before_) record_.plan = *before_;
    return known == Known::doubtful;
  }

  // Carries out the schedule `repetitions` times; collective. Returns false if ranks have called
  // different functions.
  bool run(const Schedule& schedule, const CallOnTrial& trial, int repetitions) {
    for (int i = 0; i < repetitions; ++i)
      if (!internal_collective_.carry_out(schedule, trial.call(), kernel_)) return false;
    return true;
  }

  std::int64_t elapsed_ns() const { return now_ns() - began_ns_; }

  void measure(const Shape& shape, Candidates& candidates) {
    if (candidates.count() == 0) return;
    const CallOnTrial call(shape, call_, candidates.schedule(0)->temp_bytes);
    Trials trials(candidates.count(), runtime_.config.init_budget_us * 1'000);
    auto agreed = greatest({0, call.there() ? elapsed_ns() : kNever_ns});
    while (agreed) {
      const auto trial = trials.next((*agreed)[1]);
      if (!trial) return conclude(trials, candidates, shape);
      const bool is_new = !candidates.is_built(trial->candidate);
      const Schedule* const schedule = candidates.schedule(trial->candidate);
      if (is_new) {
        // Puts memory for the schedule's temporary buffer into the pool of each rank.
        const bool there = !schedule || TempBuffer(schedule->temp_bytes).there();
        agreed = greatest({0, there ? elapsed_ns() : kNever_ns});
        if (!agreed) return;
      }
      if (!schedule) {
        trials.leave_out(trial->candidate);
        continue;
      }
      if (!trials.has_time((*agreed)[1])) return conclude(trials, candidates, shape);
      if (!run(*schedule, call, trial->warm_ups)) return;
      const std::int64_t began = now_ns();
      if (!run(*schedule, call, trial->repetitions)) return;
      agreed = greatest({(now_ns() - began) / trial->repetitions, elapsed_ns()});
      if (agreed) trials.add(*trial, (*agreed)[0]);
    }
  }

  void conclude(const Trials& trials, const Candidates& candidates, const Shape& on_trial) {
    if (trials.nothing_to_compare()) {
      record_.why = "there is no other candidate";
      return;
    }
    if (!trials.conclusive()) return give_up();
    MeasuredPlan& plan = record_.plan;
    const Candidate &fastest = candidates[trials.best()], &rule = candidates[0];
    const Candidate& best = trial_tells_apart(shape_, fastest, rule) ? fastest : rule;
    const bool again = was_measured_ && best == chosen_;
    const bool certain = trials.certain() || (again && best == rule);
    plan = {best.algorithm->name, best.tuning, {}, certain ? 0 : doubts_by_now()};
    for (std::size_t i = 0; i < candidates.count(); ++i)
      if (trials.least_ns(i) > 0)
        plan.candidates.push_back(
            {candidates[i].algorithm->name, candidates[i].tuning, trials.least_ns(i)});
    chosen_ = best;
    record_.source = Source::measured;
    record_.trial_bytes = bytes_of_all(on_trial).value_or(0);
    record_.why = best != rule      ? "the fastest"
                  : fastest != rule ? "another is faster, but only in its parts, in a shorter call"
                                    : "nothing is a tenth faster than the rule";
    if (is_first()) runtime_.plans.note(key_, plan);
  }

  // Keeps the choice of earlier runs, because there was too little time to measure.
  void give_up() {
    MeasuredPlan& plan = record_.plan;
    if (was_measured_) {
      plan.doubts = doubts_by_now();
      if (is_first()) runtime_.plans.note(key_, plan);
      return;
    }
    record_.why = "not measured: the budget was too short";
    if (is_first()) runtime_.plans.remember(key_, plan);
  }

  int doubts_by_now() const {
    const int doubts = (before_ ? before_->doubts : 0) + 1;
    return doubts < kMostDoubts ? doubts : 0;
  }

  Runtime& runtime_;
  InternalCollective& internal_collective_;
  const Call& call_;
  const Kernel kernel_;
  const Shape& shape_;
  // true if only schedules may be chosen that complete without help from a later MPI call
  const bool at_once_;
  PlanRecord& record_;
  const Candidate by_rule_;
  Candidate chosen_ = by_rule_;
  bool was_measured_ = false;           // whether earlier runs have measured the choice
  std::string key_;                     // key in the file of plans; set on rank 0 only
  std::optional<MeasuredPlan> before_;  // result of earlier runs; set on rank 0 only
  std::int64_t began_ns_ = 0;
};

}  // namespace

PlanRecord plan_by_rule(CallId id, const Call& call, const Schedule& schedule,
                        const std::string& why) {
  PlanRecord record;
  record.why = why;
  record.id = id;
  record.bytes = bytes_of_all(schedule.shape).value_or(0);
  record.ranks = schedule.shape.size;
  if (reduces(call.kind)) record.operation = reduction_words(call.op, call.recvtype);
  record.plan = {schedule.algorithm, schedule.tuning, {}};
  return record;
}

std::shared_ptr<const Schedule> tuned_schedule(Runtime& runtime, const Call& call,
                                               InternalCollective& internal_collective,
                                               Kernel kernel,
                                               std::shared_ptr<const Schedule> by_rule) {
  const std::int64_t began = now_ns();
  PlanRecord record = plan_by_rule(internal_collective.id(), call, *by_rule, "");
  const Candidate before{&algorithm_of(*by_rule), by_rule->tuning};
  const bool has_thread =
      runtime.has_memory_thread() && needs_no_library(call.kind, kernel != nullptr);
  const bool at_once = runtime.in_memory_only() && !has_thread;
  const Candidate chosen =
      Tuner(runtime, internal_collective, call, kernel, *by_rule, at_once, record).choose();
  record.plan.algorithm = chosen.algorithm->name;
  record.plan.tuning = chosen.tuning;
  auto schedule = by_rule;
  if (chosen != before)
    schedule = std::make_shared<const Schedule>(build_in_batches(
        *chosen.algorithm, by_rule->shape, runtime.config.iterations_at_a_time, chosen.tuning));
  // A schedule from the file of plans is checked as well, because the application's blocking calls
  // rely on it.
  if (at_once && !needs_no_later_help(*schedule, false)) schedule = by_rule;
  record.spent_ns = now_ns() - began;
  runtime.summary.planned(std::move(record));
  return schedule;
}

}  // namespace weft
