// Measures Weft's variant of a call against the library's own. Rank 0 looks up the result of
// earlier runs in the file of plans. Without one the ranks measure, and agree on the times after
// each trial.
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
// kRounds: the most rounds, in each of which the library's and Weft's calls are measured. kEnough:
// the rounds needed for a result. kOfFirstRound: the calls of each side in the first round, whose
// caches are cold.
constexpr int kRounds = 12, kEnough = 4, kOfFirstRound = 1;
constexpr int kLeastRepetitions = 2, kMostRepetitions = 100;
constexpr std::int64_t kTime_ns = 20'000;
// The number of calls that precede each measurement of long calls and are not timed, because the
// calls of the other side (Weft or the library) have filled the caches.
constexpr int kWarmUps = 2;
// The number of rounds of a check. A call that the library has won stays the library's. A call that
// Weft has won is checked briefly in each run, for that run only: the host of a virtual machine may
// move its cores, after which the same two copies take four times as long.
constexpr int kBrief = kEnough;

class NativeComparison {
  // The knowledge of rank 0 from earlier comparisons. others: the value on all other ranks, which
  // know nothing. in_doubt: there is a result, but it is measured again. settled: the result is
  // only checked briefly. decided: the result holds for this run.
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
    if (is_first()) earlier_.emplace(runtime_, question);
    const bool was_won = earlier_ && earlier_->is_won();
    const Known known = what_is_known();
    // The maximum is rank 0's knowledge, since the other ranks give the least value of Known.
    const auto told = internal_collective_.greatest({static_cast<std::int64_t>(known), was_won});
    began_ns_ = now_ns();
    if (!told) return true;  // ranks have made different calls, which Weft's variant will detect
    known_ = static_cast<Known>((*told)[0]);
    won_ = (*told)[1] != 0;
    return known_ == Known::decided ? won_ : measured();
  }

 private:
  bool is_first() const { return schedule_.shape.rank == 0; }

  Known what_is_known() const {
    if (!earlier_) return Known::others;
    if (!earlier_->exists()) return Known::nothing;
    if (earlier_->is_in_doubt()) return Known::in_doubt;
    return may_be_checked() ? Known::settled : Known::decided;
  }

  // Returns whether an earlier result may be checked. It may not if the library has won, if this
  // run has checked it, or if a few calls would take the whole budget.
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

  // Measures a side, Weft or the library, by so many calls that the order of the ranks' arrival
  // does not matter. The ranks agree on the time per call, which it stores in `side`. Returns the
  // time in ns that the slowest rank has spent since the beginning; nullopt if ranks have made
  // different calls.
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
    // Enough rounds of both sides must fit into the budget.
    constexpr std::int64_t kCalls = 2 * kEnough * (kWarmUps + kLeastRepetitions);
    const bool has_warm_ups = fitting < 2 * kWarmUps && kCalls * slowest_ns < budget_ns();
    side.warm_ups = has_warm_ups ? kWarmUps : 0;
    side.repetitions = static_cast<int>(
        std::clamp<std::int64_t>(fitting, has_warm_ups ? kLeastRepetitions : 1, kMostRepetitions));
    return (*agreed)[1];
  }

  // Returns the result to assume if nothing can be measured now: the earlier one; without one, that
  // Weft wins.
  bool told_before() const { return known_ == Known::nothing || won_; }

  bool measured() {
    const Shape shape = shape_on_trial(schedule_.shape);
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
    if (is_brief) {
      const bool wins = weft.least_ns <= library.least_ns;
      if (earlier_) earlier_->keep_checked(wins);
      return wins;
    }
    // Weft must be faster by a tenth for its variant to be used.
    const bool wins = weft.least_ns * 10 <= library.least_ns * 9;
    if (earlier_) earlier_->keep(schedule_, wins, library.least_ns, weft.least_ns);
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
  Known known_ = Known::nothing;              // rank 0's knowledge, which it has sent to all ranks
  bool won_ = false;                          // whether Weft has won the earlier comparison
  std::int64_t began_ns_ = 0;
  const OwnCommunicator* of_library_ = nullptr;  // the library's communicator; set during the trial
};

}  // namespace

bool may_be_compared(const Runtime& runtime, const Communicator& communicator, const Shape& shape,
                     Kernel kernel, bool tries_direct) {
  if (tries_direct && (runtime.config.shared_heap_bytes > 0 || process_memory())) return false;
  const std::string* hint = communicator.hints.algorithm_for(shape.kind);
  return shape.on_one_node && engine_for(runtime, communicator) == Engine::automatic &&
         runtime.config.init_budget_us > 0 && !runtime.callers_only() && agreed_bytes(shape) &&
         (kernel || !reduces(shape.kind)) && !why_settled(runtime.config, shape, hint);
}

bool is_won(Runtime& runtime, InternalCollective& internal_collective, const Call& call,
            const Schedule& schedule, Kernel kernel, LibraryForm form) {
  const NativeQuestion question(call, schedule, form == LibraryForm::blocking);
  Communicator& communicator = internal_collective.communicator();
  auto& agreed = communicator.attributes.find_or_make<AgreedNativeResults>();
  if (const auto is_won = agreed.find(question)) return *is_won;
  NativeComparison comparison(runtime, internal_collective, call, schedule, kernel, form);
  const bool is_won = comparison.is_won(question);
  agreed.add(question, is_won);
  return is_won;
}

}  // namespace weft
