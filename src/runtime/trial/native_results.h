// Holds the results of comparisons between Weft's collectives and the MPI library's own
// (native_comparison.h). There are two kinds of results, which may differ.
//
// A result on which the ranks of a communicator have agreed is an attribute of the communicator.
// Each rank follows it without asking the others again.
//
// A result that rank 0 knows from an earlier run, or from another communicator, is in the file of
// plans. Rank 0 sends it to the ranks of each further communicator, which then agree on it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/trial/native_watch.h"
#include "schedule/schedule.h"
#include "select/plan_cache.h"
#include "shm/joint_answers.h"
#include "shm/segment_allocator.h"
#include "transport/mpi/call.h"

namespace weft {

class Runtime;

// Says what was compared: calls of this kind of at most most_bytes bytes and, for reductions, with
// this operator and datatype. All ranks know these facts.
struct NativeQuestion {
  // bytes: size of the call or, if no rank knows it, of the longest part of any rank.
  NativeQuestion(const Call& call, const Schedule& schedule, std::int64_t bytes, bool is_blocking);

  Kind kind;
  int ranks;
  std::uint64_t most_bytes;
  bool blocking;   // true for a blocking call; false for a persistent one
  bool by_kernel;  // true if Weft uses copies by the kernel
  MPI_Op op;
  MPI_Datatype type;

  bool operator==(const NativeQuestion&) const = default;
};

// A result on which the ranks of a communicator have agreed.
struct AgreedNativeResult {
  NativeQuestion question;
  bool is_won;
  std::int64_t found_ns = 0, cost_ns = 0;  // when the last comparison ended, how long it took
  // Notices that the result may no longer hold, for a blocking call; nullptr if it holds for good.
  std::unique_ptr<NativeWatch> watch{};
  // By these the ranks decide whether to compare again, for a persistent call; nullopt if they have
  // not asked yet.
  std::optional<JointAnswers<>> is_old{};

  bool is_in_doubt() const { return watch && watch->is_in_doubt(); }
};

// The agreed results of a communicator. Only its blocking calls and initialisations use them. A
// result stays where it is, since plans refer to its watch.
class AgreedNativeResults {
 public:
  // Returns the result; nullptr if the ranks have not compared.
  AgreedNativeResult* find(const NativeQuestion& question) const;
  AgreedNativeResult& add(const NativeQuestion& question, bool is_won);
  // Lets the ranks watch a result. room: the communicator's memory, in which they agree. Without
  // any left at the first timed call, on all ranks alike, the result holds for good.
  void watch(Runtime& runtime, AgreedNativeResult& result, SegmentAllocator& room);
  // Returns whether the ranks compare again, as the first of them to ask says: `own` is this rank's
  // opinion. Without memory left, on all ranks alike, the result holds for good. All ranks must
  // have met since they last asked about this result.
  bool ask(AgreedNativeResult& result, SegmentAllocator& room, bool own);

 private:
  std::optional<SharedWords> memory_for_one(SegmentAllocator& room);

  std::vector<std::unique_ptr<AgreedNativeResult>> all_;
  std::shared_ptr<std::byte> memory_;  // shared by the results; nullptr until needed
  std::int64_t with_memory_ = 0;       // number of results that have memory
};

// The result that rank 0 of a communicator knows before the ranks compare.
class KnownNativeResult {
 public:
  KnownNativeResult(Runtime& runtime, const NativeQuestion& question);

  bool exists() const { return plan_.has_value(); }
  bool is_won() const;  // returns whether Weft was faster than the MPI library
  // Returns whether later runs must measure again. The result is valid for this run.
  bool is_in_doubt() const { return exists() && plan_->doubts > 0; }
  bool is_checked() const;  // returns whether this run has checked the result of an earlier one
  // Returns the time in ns that the slower side took for one call; 0 if there is no result.
  std::int64_t longest_ns() const;

  // Stores a measured result, also for later runs. These measure again until two clear results
  // agree, or until there are four results.
  void keep(const Schedule& schedule, bool is_won, std::int64_t library_ns, std::int64_t weft_ns);
  // Stores the result of a brief check of an earlier comparison, for this run only.
  void keep_checked(const Schedule& schedule, bool is_won);

  // Returns whether one time is at most half of the other.
  static bool is_clear(std::int64_t one_ns, std::int64_t other_ns);

 private:
  PlanCache& plans_;
  const std::string key_;
  const std::optional<MeasuredPlan> plan_;
};

}  // namespace weft
