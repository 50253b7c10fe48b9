// Records: what became of calls, plans and call classes, for the summary and for the file of plans.
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

// The times of a started collective, in ns; kept only while a summary or a trace is wanted.
struct Times {
  std::int64_t started = 0;   // the start call returned
  std::int64_t finished = 0;  // the collective was complete
  std::int64_t waiting_since = 0;
  std::int64_t waited = 0;  // inside completion calls; its share where they waited for several
};

// Divides the time from `began_ns` on among collectives that end at these times: each moment
// equally among those that have not ended. Returns the share of each.
std::vector<std::int64_t> divided_wait(std::int64_t began_ns,
                                       const std::vector<std::int64_t>& ends_ns);

// The result of one initialisation, for the summary.
struct PlanRecord {
  enum class Source : std::uint8_t { measured, cache, rule } source = Source::rule;
  std::string why;
  CallId id{};
  std::int64_t bytes = 0;  // that all ranks know alike
  int ranks = 0;
  std::string operation;  // of reductions: "sum float64"
  MeasuredPlan plan;
  std::int64_t trial_bytes = 0;  // of the call that was measured now
  std::int64_t spent_ns = 0;
};

struct CallClassKey {
  Kind kind{};
  int size_class = 0;   // the payload has so many binary digits; -1: not known as a whole
  bool kernel = false;  // a reduction by a predefined operator of a predefined type
  bool blocking = false;

  bool operator==(const CallClassKey&) const = default;
};

// Returns for instance "allreduce, predefined operator, below 1 MiB".
std::string words_of(const CallClassKey& key);
// Returns ", call 2 of 3 in turn"; "" if all calls are alike.
std::string turn_words(std::size_t position, std::size_t cycle);

// The result of a call class, for summary and cache.
struct CallClassRecord {
  CallId id{};
  CallClassKey call_class_key;
  std::string key;                      // with the communicator's layout; of what Learnt has noted
  std::size_t position = 0, cycle = 1;  // of the calls, as the learner has them
  int rank = 0, ranks = 0;
  std::vector<std::string> variants;
  Learner::Found found;
  std::vector<std::string> places;  // of its callers on rank 0, as caller_words() has them
};

// The results of this run, for the summary.
struct LearntReport {
  std::vector<CallClassRecord> call_classes;
  std::int64_t trials_cost_ns = 0;  // of all trials that this rank took part in
  std::int64_t won_ns = 0;          // by the variants that were found
  bool is_kept = false;             // a file of plans has the results for later runs
};
// Return a line for each call class, and the members of a JSON array.
std::string text_of(const LearntReport& report, double seconds);
std::string json_of(const LearntReport& report);

}  // namespace weft
