// Candidates: what a persistent collective may choose from when it is initialised, and
// the smaller call by which they are compared.
// A new way of doing it (another algorithm, another size of part, another radix) is one more entry
// here; what is measured, agreed on, cached and told is the same for all.
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

// Two places of the largest fill what a rank has in the communicator's memory.
inline constexpr std::array<std::int64_t, 3> kPartBytes = {Tuning{}.part_bytes,
                                                           kNodeBytesPerRank / 2, 16 * 1024};

// The call on trial: `shape` itself where it is short, else the same with shorter blocks, which
// move as bytes but in reductions. Only where all ranks know alike what is moved (agreed_bytes).
Shape shape_on_trial(const Shape& shape);

// All that do the call, on one node in its memory; the same on all ranks, in the same order. Their
// schedules for this rank, of which the first is there at once, are built when they are asked for,
// and kept. So none is built that no budget reaches. The first section only (build_in_sections).
class Candidates {
 public:
  // Those of `shape`, which outlives this, `first` first. at_once: only those that need no later
  // help of a caller's (needs_no_later_help). In sections of so many laps.
  Candidates(const Shape& shape, const Candidate& first, bool at_once, std::int32_t laps);

  std::size_t count() const { return all_.size(); }
  const Candidate& operator[](std::size_t number) const { return all_[number].candidate; }
  // `one` is now the second, unless it is none of them or the first. Before the second is built.
  void bring_forward(const Candidate& one);

  bool is_built(std::size_t number) const { return all_[number].is_built; }
  // nullptr, on all ranks alike: it is no candidate, since it needs later help or is the same as
  // one that was built before: a short call is the same in parts of any size.
  const Schedule* schedule(std::size_t number);

 private:
  struct One {
    Candidate candidate;
    bool is_built = false;
    std::optional<Schedule> schedule = {};
  };
  // What tells schedules apart.
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
  const std::int32_t laps_;
  std::vector<One> all_;
  std::vector<Looks> seen_;
};

// Whether the call's schedules differ by these, which are alike but in their parts; the same on all
// ranks.
bool parts_differ(const Shape& shape, const Algorithm& algorithm, const Tuning& one,
                  const Tuning& other);

// Whether times of the call on trial say which of two is faster. Of a call that is longer than
// that, other parts alone have been seen to come out otherwise
// (docs/decisions.md).
bool trial_tells_apart(const Shape& shape, const Candidate& one, const Candidate& other);

// The candidate of this name and tuning; none where there is no such for this call.
std::optional<Candidate> find_candidate(const Shape& shape, std::string_view algorithm,
                                        const Tuning& tuning);

}  // namespace weft
