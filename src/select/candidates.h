// Candidates: the algorithms and tunings among which a persistent collective may choose when it is
// initialised, and the shorter call by which they are compared. A further algorithm, chunk size or
// radix is one more entry here; measuring, agreement, the cache and the reports are shared by all.
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

// Chunk sizes to be compared, in bytes. Two chunks of the largest size fill a rank's share of the
// communicator's memory.
inline constexpr std::array<std::int64_t, 3> kChunkBytes = {Tuning{}.chunk_bytes,
                                                            kNodeBytesPerRank / 2, 16 * 1024};

// Returns the call to be measured: `shape` itself if it is short, otherwise the same call with
// shorter blocks, counted in bytes except in reductions. Requires that all ranks know the size of
// the data (bytes_of_all). Neighbourhoods whose edges are known are short.
Shape shape_on_trial(const Shape& shape);

// The candidates for a call. On one node they are the algorithms that use the node's memory. All
// ranks have the same ones in the same order. The first schedule of this rank is built at once, the
// others on request, so that no time is spent on those beyond the budget. Only the first iterations
// are built (build_in_batches).
class Candidates {
 public:
  // shape: must outlive this object. first: becomes the first candidate. at_once: excludes
  // candidates that may need the caller's help after the call has returned (needs_no_later_help).
  // iterations: the number of iterations that are built at a time.
  Candidates(const Shape& shape, const Candidate& first, bool at_once, std::int32_t iterations);

  std::size_t count() const { return all_.size(); }
  const Candidate& operator[](std::size_t number) const { return all_[number].candidate; }
  // Makes `one` the second candidate, unless it is the first or is not a candidate. Must be called
  // before the second one is built.
  void bring_forward(const Candidate& one);

  bool is_built(std::size_t number) const { return all_[number].is_built; }
  // Builds the candidate's schedule if necessary. Returns nullptr, on all ranks alike, if the
  // candidate is excluded by `at_once`, or if it equals one built before: the schedule of a short
  // call, for instance, is the same for all chunk sizes.
  const Schedule* schedule(std::size_t number);

 private:
  struct One {
    Candidate candidate;
    bool is_built = false;
    std::optional<Schedule> schedule = {};
  };
  // The features of a schedule by which equal ones are recognised.
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

// Returns whether two tunings with different chunk sizes give different schedules for the call;
// equal on all ranks.
bool chunks_differ(const Shape& shape, const Algorithm& algorithm, const Tuning& one,
                   const Tuning& other);

// Returns whether times of the shortened call tell which of two candidates is faster for the call
// itself. For longer calls, the order of candidates that differ only in chunk size was seen to
// change (docs/decisions.md).
bool trial_tells_apart(const Shape& shape, const Candidate& one, const Candidate& other);

// Returns the candidate of this name and tuning, if the call has one.
std::optional<Candidate> find_candidate(const Shape& shape, std::string_view algorithm,
                                        const Tuning& tuning);

}  // namespace weft
