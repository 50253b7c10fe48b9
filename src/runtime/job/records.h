// Defines the records of calls, plans and call classes, for the summary and the file of plans.
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

// The times of a non-blocking or persistent collective, in ns. They are recorded only if a summary
// or a trace is requested.
struct Times {
  std::int64_t started = 0;   // when the start call returned
  std::int64_t finished = 0;  // when the collective was complete
  std::int64_t waiting_since = 0;
  // The duration of the completion calls. If a call waited for several collectives, only this one's
  // share counts.
  std::int64_t waited = 0;
};

// Divides the duration of a completion call among the collectives for which it waited. Each moment
// is divided equally among those that were not yet complete. began_ns: when the call began.
// ends_ns: when each collective was complete. Returns each collective's share in ns.
std::vector<std::int64_t> divided_wait(std::int64_t began_ns,
                                       const std::vector<std::int64_t>& ends_ns);

// The result of the initialisation of a persistent collective, for the summary.
struct PlanRecord {
  enum class Source : std::uint8_t { measured, cache, rule } source = Source::rule;
  std::string why;
  CallId id{};
  std::int64_t bytes = 0;  // size of the call, which is equal on all ranks
  int ranks = 0;
  std::string operation;  // operator and datatype of a reduction, for instance "sum float64"
  MeasuredPlan plan;
  std::int64_t trial_bytes = 0;  // size of the call that was measured to find the plan
  std::int64_t spent_ns = 0;
};

struct CallClassKey {
  Kind kind{};
  // The number of binary digits of the size of the call in bytes. If no rank knows the whole size,
  // -1 or, on a single node, the most digits of any rank's part of calls of about this length.
  int size_class = 0;
  bool kernel = false;  // true for a reduction by a predefined operator on a predefined datatype
  bool blocking = false;

  bool operator==(const CallClassKey&) const = default;
};

// Describes a call class, for instance "allreduce, predefined operator, below 1 MiB".
std::string words_of(const CallClassKey& key);
// Describes a position in a sequence of `cycle` calls that the program repeats, for instance ",
// call 2 of 3 in turn". Returns "" if the sequence has only one call.
std::string turn_words(std::size_t position, std::size_t cycle);

// Holds what this run has learnt about a call class (similar calls on one communicator). The
// summary prints it, and the file of plans keeps it.
struct CallClassRecord {
  CallId id{};
  CallClassKey call_class_key;
  std::string key;  // key in the file of plans, which contains the communicator's layout
  // cycle: the number of calls in a sequence that the program repeats. position: the call in this
  // sequence to which the record belongs.
  std::size_t position = 0, cycle = 1;
  int rank = 0, ranks = 0;
  std::vector<std::string> variants;
  Learner::Found found;
  // The places in the program that make these calls on rank 0, as caller_words() returns them.
  std::vector<std::string> places;
};

// Holds what this run has learnt about all call classes (groups of similar calls). The summary
// prints it.
struct LearntReport {
  std::vector<CallClassRecord> call_classes;
  std::int64_t trials_cost_ns = 0;  // time that all trials on this rank have cost
  std::int64_t won_ns = 0;          // time that the learnt choices have saved
  bool is_kept = false;  // whether the results were written to a file of plans for later runs
};
// text_of() returns one line for each call class; json_of() returns the members of a JSON array.
// seconds: the run time.
std::string text_of(const LearntReport& report, double seconds);
std::string json_of(const LearntReport& report);

}  // namespace weft
