// Measures Weft's collective against the MPI library's own. Rank 0 looks for a result of earlier
// runs in the file of plans. If there is none, the ranks measure, and agree on the times after each
// measurement.
#include "runtime/trial/native_comparison.h"

#include <algorithm>

#include "base/clock.h"
#include "library/generated/library_calls.h"
#include "runtime/job/runtime.h"
#include "runtime/node/reach.h"
#include "runtime/trial/call_on_trial.h"
#include "runtime/trial/native_results.h"
#include "select/candidates.h"
#include "transport/mpi/library_step.h"

namespace weft {
namespace {

constexpr std::int64_t kNever_ns = INT64_MAX / 16;
// kRounds: the largest number of rounds; in each round both the MPI library's and Weft's calls are
// measured. kEnough: the number of rounds that a result needs. kOfFirstRound: the number of calls
// of each in the first round, in which the caches are cold.
constexpr int kRounds = 12, kEnough = 4, kOfFirstRound = 1;
constexpr int kLeastRepetitions = 2, kMostRepetitions = 100;
constexpr std::int64_t kTime_ns = 20'000;
// The number of calls before each measurement that are not timed. They refill the caches, which
// contain the data of the calls measured before (Weft's or the MPI library's).
constexpr int kWarmUps = 2;
// The number of rounds of a check. The host of a virtual machine may move its cores, after which
// the same two copies take four times as long. Therefore a call that Weft has won is checked
// briefly in each run, and any call is after its time has changed (native_watch.h). The result
// holds for that run only.
constexpr int kBrief = kEnough;

class NativeComparison {
  // Rank 0's knowledge from earlier runs. nothing: no result. in_doubt: a result that must be
  // measured again. settled: a result that must be checked. decided: a result for this run. The
  // other ranks know nothing and use `others`, the least value.
  enum class Known : std::int8_t { others, nothing, in_doubt, settled, decided };

 public:
  NativeComparison(Runtime& runtime, InternalCollective& internal_collective, const Call& call,
                   const Schedule& schedule, Kernel kernel, LibraryForm form)
      : runtime_(runtime),
        internal_collective_(internal_collective),
        call_(call),
        schedule_(schedule),
        kernel_(kernel),
        form_(form) {}

  bool is_won(const NativeQuestion& question) {
    longest_bytes_ = static_cast<std::int64_t>(question.most_bytes);
    if (is_first()) earlier_.emplace(runtime_, question);
    const bool was_won = earlier_ && earlier_->is_won();
    const Known known = what_is_known();
    // The maximum is what rank 0 knows, since all other ranks give the least value.
    const auto told = internal_collective_.greatest({static_cast<std::int64_t>(known), was_won});
    began_ns_ = now_ns();
    // If ranks have made different calls, nothing is measured. Weft's collective will report the
    // error.
    if (!told) return true;
    known_ = static_cast<Known>((*told)[0]);
    won_ = (*told)[1] != 0;
    return known_ == Known::decided ? won_ : measured();
  }

  // Checks a result on which the ranks have agreed in this run.
  bool is_still_won(const NativeQuestion& question, bool was_won) {
    longest_bytes_ = static_cast<std::int64_t>(question.most_bytes);
    if (is_first()) earlier_.emplace(runtime_, question);
    known_ = Known::settled;
    won_ = was_won;
    began_ns_ = now_ns();
    return measured();
  }

 private:
  bool is_first() const { return schedule_.shape.rank == 0; }

  Known what_is_known() const {
    if (!earlier_) return Known::others;
    if (!earlier_->exists()) return Known::nothing;
    if (earlier_->is_in_doubt()) return Known::in_doubt;
    return may_be_checked() ? Known::settled : Known::decided;
  }

  // Returns whether an earlier result may be checked. It may not if the MPI library was faster, if
  // this run has checked it already, or if a few calls would exceed the time for measurements.
  bool may_be_checked() const {
    return earlier_->is_won() && !earlier_->is_checked() &&
           2 * kBrief * earlier_->longest_ns() < budget_ns();
  }

  bool by_library(const Call& call) const {
    const MPI_Comm comm = of_library_->get();
    if (form_ == LibraryForm::blocking) return library_blocking(call, comm) == MPI_SUCCESS;
    MPI_Request request;
    return library_nonblocking(call, comm, &request) == MPI_SUCCESS &&
           library_calls.Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS;
  }

  struct Side {
    bool is_library;
    int repetitions = kOfFirstRound, warm_ups = 0;
    std::int64_t least_ns = kNever_ns;  // shortest time per call, on the slowest rank
  };

  bool run(const Side& side, int times, const Schedule& schedule, const CallOnTrial& call) {
    for (int i = 0; i < times; ++i)
      if (side.is_library ? !by_library(call.call())
                          : !internal_collective_.carry_out(schedule, call.call(), kernel_))
        return false;
    return true;
  }

  // Measures the calls of one side, Weft or the MPI library. It makes so many calls that it does
  // not matter in which order the ranks arrive. Stores the time per call, on which the ranks agree,
  // in `side`. Returns the time in ns that the slowest rank has spent since the beginning; nullopt
  // if ranks have made different calls.
  std::optional<std::int64_t> time(Side& side, const Schedule& schedule, const CallOnTrial& call,
                                   bool is_warm) {
    if (!run(side, side.warm_ups, schedule, call)) return std::nullopt;
    const std::int64_t began = now_ns();
    if (!run(side, side.repetitions, schedule, call)) return std::nullopt;
    const std::int64_t each_ns = (now_ns() - began) / side.repetitions;
    const auto agreed = internal_collective_.greatest({each_ns, now_ns() - began_ns_});
    if (!agreed) return std::nullopt;
    const std::int64_t slowest_ns = std::max<std::int64_t>((*agreed)[0], 1);
    if (is_warm) side.least_ns = std::min(side.least_ns, slowest_ns);
    const std::int64_t fitting = kTime_ns / slowest_ns;
    // The time for measurements must suffice for kEnough rounds of both sides.
    constexpr std::int64_t kCalls = 2 * kEnough * (kWarmUps + kLeastRepetitions);
    const bool has_warm_ups = fitting < 2 * kWarmUps && kCalls * slowest_ns < budget_ns();
    side.warm_ups = has_warm_ups ? kWarmUps : 0;
    side.repetitions = static_cast<int>(
        std::clamp<std::int64_t>(fitting, has_warm_ups ? kLeastRepetitions : 1, kMostRepetitions));
    return (*agreed)[1];
  }

  // Returns the result to use if nothing can be measured now. This is the result of earlier runs;
  // without one, Weft counts as faster.
  bool told_before() const { return known_ == Known::nothing || won_; }

  bool measured() {
    const Shape shape = shape_on_trial(schedule_.shape, longest_bytes_);
    const Schedule schedule = build(algorithm_of(schedule_), shape, schedule_.tuning);
    const CallOnTrial call(shape, call_, schedule.temp_bytes);
    const OwnCommunicator own(internal_collective_.communicator());
    const auto all_there =
        internal_collective_.greatest({call.there() ? 0 : 1, own.there() ? 0 : 1});
    if (!all_there || (*all_there)[0] != 0) return true;
    if ((*all_there)[1] != 0) return told_before();
    of_library_ = &own;
    began_ns_ = now_ns();
    Side library{true}, weft{false};
    std::int64_t spent_ns = 0;
    int round = 0;
    const bool is_brief = known_ == Known::settled;
    for (; round < (is_brief ? kBrief : kRounds) && spent_ns < budget_ns(); ++round) {
      for (Side* side : {&library, &weft}) {
        const auto spent = time(*side, schedule, call, round > 0);
        if (!spent) return true;
        spent_ns = *spent;
      }
      const bool takes_long = round >= kEnough && spent_ns > budget_ns() / 4;
      if (takes_long && KnownNativeResult::is_clear(library.least_ns, weft.least_ns)) break;
    }
    if (round < kEnough) return told_before();  // a busy machine allowed too few rounds
    // Weft must be faster by a tenth for its variant to be used, and not slower to stay in use.
    const bool stays = is_brief && won_ && weft.least_ns <= library.least_ns;
    const bool wins = stays || weft.least_ns * 10 <= library.least_ns * 9;
    if (earlier_ && is_brief) earlier_->keep_checked(schedule_, wins);
    if (earlier_ && !is_brief) earlier_->keep(schedule_, wins, library.least_ns, weft.least_ns);
    return wins;
  }

  std::int64_t budget_ns() const { return runtime_.config.init_budget_us * 1'000; }

  Runtime& runtime_;
  InternalCollective& internal_collective_;
  const Call& call_;
  const Schedule& schedule_;
  const Kernel kernel_;
  const LibraryForm form_;
  std::optional<KnownNativeResult> earlier_;  // known to rank 0 only
  Known known_ = Known::nothing;  // rank 0's knowledge from earlier runs; equal on all ranks
  bool won_ = false;              // whether Weft was faster in earlier runs
  std::int64_t began_ns_ = 0;
  std::int64_t longest_bytes_ = 0;               // NativeQuestion::most_bytes
  const OwnCommunicator* of_library_ = nullptr;  // the communicator for the MPI library's calls
};

}  // namespace

bool may_be_compared(const Runtime& runtime, const Communicator& communicator, const Shape& shape,
                     Kernel kernel, bool tries_direct) {
  if (tries_direct && (runtime.config.shared_heap_bytes > 0 || process_memory())) return false;
  const std::string* hint = communicator.hints.algorithm_for(shape.kind);
  return shape.on_one_node && engine_for(runtime, communicator) == Engine::automatic &&
         runtime.config.init_budget_us > 0 && !runtime.callers_only() &&
         !is_neighborhood(shape.kind) && (kernel || !reduces(shape.kind)) &&
         !why_settled(runtime.config, shape, hint);
}

namespace {

// Returns whether the ranks compare again at the initialisation of a persistent collective, since
// the machine may have another state than at the last comparison. The answer is equal on all ranks,
// and takes no message: every initialisation that comes here has begun with an exchange between all
// ranks (peers_for(), tuned_schedule() or longest_part()), so all have had the previous answer.
bool is_old(const Runtime& runtime, AgreedNativeResults& results, Communicator& communicator,
            AgreedNativeResult& result) {
  constexpr std::int64_t kOld_ns = 500'000'000;
  const TrialBudget& budget = runtime.trial_budget;
  if (runtime.config.learn == Learn::switching) return true;
  if (runtime.config.learn != Learn::on || budget.is_none()) return false;
  const std::int64_t now = now_ns();
  const bool may_compare =
      budget.allows(budget.spent_ns() + result.cost_ns, budget.elapsed_ns(now));
  return results.ask(result, communicator.room, now - result.found_ns >= kOld_ns && may_compare);
}

void compare_again(Runtime& runtime, NativeComparison& comparison, AgreedNativeResult& result) {
  const std::int64_t began_ns = now_ns();
  const bool was_won = result.is_won;
  const bool switches = runtime.config.learn == Learn::switching;
  result.is_won = switches ? !was_won : comparison.is_still_won(result.question, was_won);
  result.found_ns = now_ns();
  result.cost_ns = result.found_ns - began_ns;
  runtime.trial_budget.spend(result.cost_ns);
  if (result.watch) result.watch->compared(result.is_won != was_won, result.cost_ns);
}

}  // namespace

NativeResult native_result(Runtime& runtime, InternalCollective& internal_collective,
                           const Call& call, const Schedule& schedule, Kernel kernel,
                           std::int64_t bytes, LibraryForm form) {
  const NativeQuestion question(call, schedule, bytes, form == LibraryForm::blocking);
  Communicator& communicator = internal_collective.communicator();
  auto& results = communicator.attributes.find_or_make<AgreedNativeResults>();
  NativeComparison comparison(runtime, internal_collective, call, schedule, kernel, form);
  AgreedNativeResult* result = results.find(question);
  if (!result) {
    result = &results.add(question, comparison.is_won(question));
    result->found_ns = now_ns();
    if (question.blocking) results.watch(runtime, *result, communicator.room);
  } else if (question.blocking ? result->is_in_doubt()
                               : is_old(runtime, results, communicator, *result)) {
    compare_again(runtime, comparison, *result);
  }
  return {result->is_won, result->watch.get()};
}

}  // namespace weft
