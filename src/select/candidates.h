// Candidates: what a persistent collective may choose from when it is initialised, and
// the smaller call by which they are compared.
// A new way of doing it (another algorithm, another size of part, another radix) is one more entry
// here; what is measured, agreed on, cached and told is the same for all.
#pragma once

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

// With its schedule for this rank, which may be that of a smaller call, and the first section only.
struct BuiltCandidate {
  Candidate candidate;
  Schedule schedule;
};

// The call on trial: `shape` itself where it is short, else the same with shorter blocks, which
// move as bytes but in reductions. Only where all ranks know alike what is moved (agreed_bytes).
Shape shape_on_trial(const Shape& shape);

// All that do the call, on one node in its memory, `first` first, and no two that are the same: a
// short call is the same in parts of any size. at_once: only those that need no later help of a
// caller's (needs_no_later_help). In sections of so many laps (build_in_sections). The same on all
// ranks, in the same order.
std::vector<BuiltCandidate> candidates_for(const Shape& shape, const Candidate& first, bool at_once,
                                           std::int32_t laps);

// Whether times of the call on trial say which of two is faster. Of a call that is longer than
// that, other parts alone have been seen to come out otherwise
// (docs/decisions.md).
bool trial_tells_apart(const Shape& shape, const Candidate& one, const Candidate& other);

// The candidate of this name and tuning; none where there is no such for this call.
std::optional<Candidate> find_candidate(const Shape& shape, std::string_view algorithm,
                                        const Tuning& tuning);

}  // namespace weft
