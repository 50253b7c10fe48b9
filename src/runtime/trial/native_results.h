// Native results: the results of comparisons of Weft's calls with the MPI library's own
// (native_comparison.h). There are two kinds, which may differ, and each is kept in one place:
// - The result on which the ranks of a communicator have agreed is an attribute of the
//   communicator. Each rank follows it without asking the others again.
// - The result that rank 0 knows from an earlier run or from another communicator is in the file of
//   plans. It is sent to the ranks of each further communicator, which then agree.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedule/schedule.h"
#include "select/plan_cache.h"
#include "transport/mpi/call.h"

namespace weft {

class Runtime;

// The subject of a comparison: calls of at most most_bytes bytes and, if they reduce, with this
// operator and type. All ranks know these facts.
struct NativeQuestion {
  NativeQuestion(const Call& call, const Schedule& schedule, bool is_blocking);

  Kind kind;
  int ranks;
  std::uint64_t most_bytes;
  bool blocking;   // blocking call; otherwise a persistent one
  bool by_kernel;  // Weft's variant uses a single copy by the kernel
  MPI_Op op;
  MPI_Datatype type;

  bool operator==(const NativeQuestion&) const = default;
};

// The agreed results of a communicator. Only its blocking calls and initialisations use them.
class AgreedNativeResults {
 public:
  // Returns whether Weft has won; nullopt if the ranks have not compared.
  std::optional<bool> find(const NativeQuestion& question) const;
  void add(const NativeQuestion& question, bool is_won) { all_.emplace_back(question, is_won); }

 private:
  std::vector<std::pair<NativeQuestion, bool>> all_;
};

// The result that rank 0 of a communicator knows before the ranks compare.
class KnownNativeResult {
 public:
  KnownNativeResult(Runtime& runtime, const NativeQuestion& question);

  bool exists() const { return plan_.has_value(); }
  bool is_won() const;  // returns whether Weft has won
  // Returns whether later runs measure again. In this run the result holds.
  bool is_in_doubt() const { return exists() && plan_->doubts > 0; }
  bool is_checked() const;  // returns whether this run has checked the earlier result
  // Returns the time of the slower side for a single call; 0 if there is no result.
  std::int64_t longest_ns() const;

  // Stores a measured result, also for later runs. Later runs measure again until two clear results
  // agree, or four were found.
  void keep(const Schedule& schedule, bool is_won, std::int64_t library_ns, std::int64_t weft_ns);
  // Stores the result of a brief check of an earlier comparison, for this run only.
  void keep_checked(bool is_won);

  // Returns whether one side takes at most half of the other's time.
  static bool is_clear(std::int64_t one_ns, std::int64_t other_ns);

 private:
  PlanCache& plans_;
  const std::string key_;
  const std::optional<MeasuredPlan> plan_;
};

}  // namespace weft
