// Records: results of calls, plans and call classes, for the summary and for the file of plans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "library/generated/call_ids.h"
#include "schedule/collective.h"
#include "select/learner.h"
#include "select/plan_cache.h"

namespace weft {

// The times of a started collective: points in time and durations in ns. They are kept only if a
// summary or a trace is wanted.
struct Times {
  std::int64_t started = 0;   // time when the start call returned
  std::int64_t finished = 0;  // time when the collective was complete
  std::int64_t waiting_since = 0;
  std::int64_t waited = 0;  // time inside completion calls; a share of it if a call waited for
                            // several collectives
};

// Divides the time of a wait that began at `began_ns` among collectives that end at `ends_ns`: each
// moment counts equally for those that have not ended by then. Returns the share of each in ns.
std::vector<std::int64_t> divided_wait(std::int64_t began_ns,
                                       const std::vector<std::int64_t>& ends_ns);

// The result of a persistent initialisation, for the summary.
struct PlanRecord {
  enum class Source : std::uint8_t { measured, cache, rule } source = Source::rule;
  std::string why;
  CallId id{};
  std::int64_t bytes = 0;  // size of the call, equal on all ranks
  int ranks = 0;
  std::string operation;  // for reductions: for instance "sum float64"
  MeasuredPlan plan;
  std::int64_t trial_bytes = 0;  // size of the call that was measured to find the plan
  std::int64_t spent_ns = 0;
};

struct CallClassKey {
  Kind kind{};
  int size_class = 0;   // number of binary digits of the payload in bytes; -1 if no rank knows the
                        // whole payload
  bool kernel = false;  // a reduction by a predefined operator on a predefined type
  bool blocking = false;

  bool operator==(const CallClassKey&) const = default;
};

// Returns for instance "allreduce, predefined operator, below 1 MiB".
std::string words_of(const CallClassKey& key);
// Returns for instance ", call 2 of 3 in turn"; "" if the sequence of calls has length 1.
std::string turn_words(std::size_t position, std::size_t cycle);

// The result of a call class, for the summary and the file of plans.
struct CallClassRecord {
  CallId id{};
  CallClassKey call_class_key;
  std::string key;  // key of the plan, which includes the communicator's layout; set by Learnt
  std::size_t position = 0, cycle = 1;  // position of the class in a repeating sequence of calls,
                                        // and its length
  int rank = 0, ranks = 0;
  std::vector<std::string> variants;
  Learner::Found found;
  std::vector<std::string> places;  // call sites on rank 0, in the form of caller_words()
};

// The results of learning in this run, for the summary.
struct LearntReport {
  std::vector<CallClassRecord> call_classes;
  std::int64_t trials_cost_ns = 0;  // time that all trials on this rank have cost
  std::int64_t won_ns = 0;          // time saved by the chosen variants
  bool is_kept = false;             // the results are in a file of plans for later runs
};
// Return a line of text for each call class, or the members of a JSON array.
std::string text_of(const LearntReport& report, double seconds);
std::string json_of(const LearntReport& report);

}  // namespace weft
