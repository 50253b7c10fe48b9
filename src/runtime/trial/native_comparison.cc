// Measures Weft's form of a call against the library's own. Rank 0 looks the result of earlier runs
// up in the cache of plans; without one the ranks measure, and agree on the times after each trial.
#include "runtime/trial/native_comparison.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>

#include "base/clock.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/job/runtime.h"
#include "runtime/node/reach.h"
#include "runtime/trial/call_on_trial.h"
#include "select/candidates.h"
#include "transport/mpi/kernels.h"
#include "transport/mpi/library_step.h"

namespace weft {
namespace {

constexpr const char* kLibrary = "library";
// A part of the key that changes whenever native comparisons are made differently, so that earlier
// results do not count.
constexpr const char* kMethod = "warm";
constexpr std::int64_t kNever_ns = INT64_MAX / 16;
// The most rounds in which both sides take turns, and the duration of each. Fewer than kEnough
// rounds tell nothing, and the first one is cold.
constexpr int kRounds = 12, kEnough = 4, kOfFirstRound = 1;
constexpr int kLeastRepetitions = 2, kMostRepetitions = 100;
constexpr std::int64_t kTime_ns = 20'000;
// The calls before a measurement of long calls, since the other side has filled the caches.
constexpr int kWarmUps = 2;
// A native comparison is repeated in later runs until it has been won twice and clearly, or so
// often.
constexpr int kMostDoubts = 4;
// Afterwards a call that the library has won stays the library's. One that Weft has won is checked
// briefly in each run, for that run only: a virtual machine's host moves its cores, and the same
// two copies then take four times as long.
constexpr int kBrief = kEnough;

// The checks of this run, by key, on ranks that are rank 0 of some communicator.
struct Checks {
  std::mutex mutex;  // guards the rest
  std::map<std::string, bool> won;
};
Checks& checks() {
  static auto* instance = new Checks;
  return *instance;
}

std::optional<bool> result_of_check(const std::string& key) {
  const std::lock_guard lock(checks().mutex);
  const auto found = checks().won.find(key);
  return found == checks().won.end() ? std::nullopt : std::optional(found->second);
}

void note_check(const std::string& key, bool won) {
  const std::lock_guard lock(checks().mutex);
  checks().won[key] = won;
}

// The measured result for a collective of at most so many bytes and, if it reduces, of one operator
// and type: whether Weft's variant or the library's is taken. It rests on facts that all ranks
// know.
struct NativeResult {
  Kind kind;
  std::uint64_t most_bytes;
  bool blocking;   // else persistent
  bool by_kernel;  // Weft's variant is one copy by the kernel
  MPI_Op op;
  MPI_Datatype type;
  bool won = false;  // Weft's

  bool is_about(const NativeResult& other) const {
    return kind == other.kind && most_bytes == other.most_bytes && blocking == other.blocking &&
           by_kernel == other.by_kernel && op == other.op && type == other.type;
  }
};

// The results of one communicator. Only its blocking calls and initialisations use them.
struct NativeResults {
  std::vector<NativeResult> all;
};

class NativeComparison {
  // The state that rank 0 knows; `decided` holds for this run.
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

  bool is_won() {
    if (is_first()) before_ = runtime_.plans.find(key_ = key());
    std::int64_t was_won = is_first() && before_ && before_->algorithm != kLibrary;
    const std::optional<bool> now = is_first() && was_won ? result_of_check(key_) : std::nullopt;
    if (now) was_won = *now;
    // The maximum is what rank 0 knows, since the others give the least value.
    const Known known = !is_first()                ? Known::others
                        : !before_                 ? Known::nothing
                        : before_->doubts > 0      ? Known::in_doubt
                        : now || !may_be_checked() ? Known::decided
                                                   : Known::settled;
    const auto told = internal_collective_.greatest({static_cast<std::int64_t>(known), was_won});
    began_ns_ = now_ns();
    if (!told) return true;  // ranks make different calls, which Weft's variant finds out
    known_ = static_cast<Known>((*told)[0]);
    won_ = (*told)[1] != 0;
    return known_ == Known::decided ? won_ : measured();
  }

 private:
  bool is_first() const { return schedule_.shape.rank == 0; }

  std::string key() const {
    const Shape& shape = schedule_.shape;
    const auto bytes = static_cast<std::uint64_t>(agreed_bytes(shape).value_or(0));
    const std::string operation =
        reduces(shape.kind) ? reduction_words(call_.op, call_.recvtype) : "";
    const std::string level = runtime_.in_memory_only() ? "level kept" : "any level";
    return plan_key({"weft " WEFT_VERSION, Runtime::platform(),
                     std::to_string(shape.size) + " ranks", kind_name(shape.kind),
                     "<= " + std::to_string(std::bit_ceil(bytes)) + " bytes", operation,
                     level + (schedule_.is_direct ? ", one copy by the kernel" : ""),
                     form_ == LibraryForm::blocking ? "or the library's blocking call"
                                                    : "or the library's start and wait",
                     kMethod});
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
    std::int64_t least_ns = kNever_ns;  // per call, on the slowest rank
  };

  bool run(const Side& side, int times, const Schedule& schedule, const CallOnTrial& call) {
    for (int i = 0; i < times; ++i)
      if (side.is_library ? !by_library(call.call())
                          : !internal_collective_.carry_out(schedule, call.call(), kernel_))
        return false;
    return true;
  }

  // Measures a side by so many calls that the first rank to arrive does not matter; the time is
  // agreed on. Returns nothing if ranks make different calls. The slowest rank's share of the
  // budget is spent.
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

  // Returns the assumed result if nothing can be measured now.
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
      if (takes_long && is_clear(library.least_ns, weft.least_ns)) break;
    }
    if (round < kEnough) return told_before();  // on a busy machine
    if (is_brief) {
      const bool wins = weft.least_ns <= library.least_ns;
      if (is_first()) note_check(key_, wins);
      return wins;
    }
    // Weft must be faster by a tenth: otherwise nothing changes.
    const bool wins = weft.least_ns * 10 <= library.least_ns * 9;
    keep(wins, library.least_ns, weft.least_ns);
    return wins;
  }

  // Returns false if the library has won, or if a few calls would take the whole budget.
  bool may_be_checked() const {
    std::int64_t longest_ns = 0;
    for (const auto& one : before_->candidates) longest_ns = std::max(longest_ns, one.ns);
    return before_->algorithm != kLibrary && 2 * kBrief * longest_ns < budget_ns();
  }

  std::int64_t budget_ns() const { return runtime_.config.init_budget_us * 1'000; }

  static bool is_clear(std::int64_t one_ns, std::int64_t other_ns) {
    return std::max(one_ns, other_ns) >= 2 * std::min(one_ns, other_ns);
  }

  void keep(bool wins, std::int64_t library_ns, std::int64_t weft_ns) {
    if (!is_first()) return;
    const int doubts = (before_ ? before_->doubts : 0) + 1;
    const std::string name = schedule_.algorithm, winner = wins ? name : kLibrary;
    const bool again = before_ && before_->algorithm == winner && is_clear(library_ns, weft_ns);
    runtime_.plans.note(key_, {winner,
                               schedule_.tuning,
                               {{kLibrary, {}, library_ns}, {name, schedule_.tuning, weft_ns}},
                               again || doubts >= kMostDoubts ? 0 : doubts});
  }

  Runtime& runtime_;
  InternalCollective& internal_collective_;
  const Call& call_;
  const Schedule& schedule_;
  const Kernel kernel_;
  const LibraryForm form_;
  std::string key_;                     // of rank 0 only
  std::optional<MeasuredPlan> before_;  // the same
  Known known_ = Known::nothing;        // on all ranks
  bool won_ = false;                    // according to what is known
  std::int64_t began_ns_ = 0;
  const OwnCommunicator* of_library_ = nullptr;  // during the trial
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
  const Kind kind = schedule.shape.kind;
  const std::int64_t bytes = *agreed_bytes(schedule.shape);
  const bool reduction = reduces(kind);  // else types may differ between ranks
  auto& known = internal_collective.communicator().attributes.find_or_make<NativeResults>().all;
  const NativeResult asked{kind,
                           std::bit_ceil(static_cast<std::uint64_t>(bytes)),
                           form == LibraryForm::blocking,
                           schedule.is_direct,
                           reduction ? call.op : handles.op_null,
                           reduction ? call.recvtype : handles.byte};
  for (const NativeResult& result : known)
    if (result.is_about(asked)) return result.won;
  known.push_back(asked);
  known.back().won =
      NativeComparison(runtime, internal_collective, call, schedule, kernel, form).is_won();
  return known.back().won;
}

}  // namespace weft
