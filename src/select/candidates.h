// Candidates: the algorithms and tunings that are measured when a persistent collective is
// initialised, and the shorter call with which they are measured. A further algorithm, chunk size
// or radix is one more entry here; measuring, agreement, the cache and the reports are shared by
// all.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "coll/algorithm.h"

namespace weft {

struct Candidate {
  const Algorithm* algorithm = nullptr;
  Tuning tuning;

  bool operator==(const Candidate&) const = default;
};

// Chunk sizes to be measured, in bytes. Two chunks of the largest size fill a rank's share of the
// communicator's shared memory.
inline constexpr std::array<std::int64_t, 3> kChunkBytes = {Tuning{}.chunk_bytes,
                                                            kNodeBytesPerRank / 2, 16 * 1024};

// Returns the call with which candidates are measured: `shape` itself if it is short, otherwise the
// same call with shorter blocks, counted in bytes except in reductions. A neighborhood collective
// whose messages are known (Shape::edges) is short. longest_bytes: if no rank knows the size of the
// call, the most bytes of any rank's part, equal on all ranks; otherwise it does not matter.
Shape shape_on_trial(const Shape& shape, std::int64_t longest_bytes = 0);

// Candidates: the algorithms and tunings to measure for a call, equal and in the same order on all
// ranks. On one node they are the algorithms that use its shared memory. The first candidate's
// schedule is built at once and the others on request, so that no time is spent on those beyond the
// time budget. Only the first iterations of a schedule are built (build_in_batches).
class Candidates {
 public:
  // shape: must outlive this object. first: becomes the first candidate. at_once: excludes
  // candidates whose call may need help of the calling thread after it has returned
  // (needs_no_later_help). iterations: the number of iterations that are built at a time.
  Candidates(const Shape& shape, const Candidate& first, bool at_once, std::int32_t iterations);

  std::size_t count() const { return all_.size(); }
  const Candidate& operator[](std::size_t number) const { return all_[number].candidate; }
  // Makes `one` the second candidate, unless it is the first or not among the candidates. Must be
  // called before the second candidate's schedule is built.
  void bring_forward(const Candidate& one);

  bool is_built(std::size_t number) const { return all_[number].is_built; }
  // Returns the schedule of the candidate, after building it if necessary. Returns nullptr, on all
  // ranks alike, if the parameter `at_once` of the constructor excludes the candidate, or if its
  // schedule equals one that was built before. For a short call, for instance, the schedules for
  // all chunk sizes are equal.
  const Schedule* schedule(std::size_t number);

 private:
  struct One {
    Candidate candidate;
    bool is_built = false;
    std::optional<Schedule> schedule = {};
  };
  // Features of a schedule. Two schedules of a call with the same features are equal.
  struct Looks {
    const Algorithm* algorithm;
    int radix, radix_across;
    std::int64_t node_bytes;

    bool operator==(const Looks&) const = default;
  };

  void add(const Algorithm& algorithm, const Tuning& first);
  bool is_new(const Candidate& candidate, const Schedule& schedule);
  std::int64_t node_bytes(const Candidate& candidate, const Schedule& schedule) const;

  const Shape& shape_;
  const bool at_once_;
  const std::int32_t iterations_;
  std::vector<One> all_;
  std::vector<Looks> seen_;
};

// Returns whether two tunings with different chunk sizes give different schedules for the call. All
// ranks get the same answer.
bool chunks_differ(const Shape& shape, const Algorithm& algorithm, const Tuning& one,
                   const Tuning& other);

// Returns whether times of the shortened call tell which of two candidates is faster in the call
// itself. They do not for candidates that differ only in chunk size if the call is longer than
// that: their order was seen to change (docs/decisions.md).
bool trial_tells_apart(const Shape& shape, const Candidate& one, const Candidate& other);

// Returns the candidate with this algorithm and tuning; nothing if the call has no such candidate.
std::optional<Candidate> find_candidate(const Shape& shape, std::string_view algorithm,
                                        const Tuning& tuning);

}  // namespace weft
