// Measures from which size one copy by the kernel is faster than two copies through shared memory.
// The file of plans contains one line for broadcasts (data of one rank) and one for allgathers
// (data of all ranks). Its chunk size is this size; 0 means that one copy is never faster.
#include "runtime/node/one_copy.h"

#include <unistd.h>

#include <optional>
#include <string>

#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/node/one_copy_trial.h"
#include "shm/segment.h"
#include "topo/machine.h"

namespace weft {
namespace {

// These names are written to the file of plans, and `weft info` reads them.
constexpr const char *kKey = "one copy", *kOfOne = "of one rank, in a row",
                     *kOfAll = "of all ranks";
constexpr const char *kOneCopy = "one-copy", *kTwoCopies = "two-copies";

std::string key_of(const char* traffic) {
  return plan_key({"weft " WEFT_VERSION, machine_words(), kKey, traffic});
}

// Returns the time in ns that the measurement in MPI_Init may take. This is half of --init-budget,
// and 5 ms by default.
std::int64_t budget_ns(const Config& config) {
  return config.init_budget_us * 1'000 / 2;
}

Tuning tuning_of(std::int64_t bytes) {
  Tuning tuning;
  tuning.chunk_bytes = bytes == OneCopyRule::kNever ? 0 : bytes;
  return tuning;
}

// The result of earlier runs for broadcasts or for allgathers: the size in bytes from which one
// copy is faster, and whether no further measurement is needed.
struct Kept {
  std::int64_t least_bytes = OneCopyRule::kNever;
  bool is_certain = false;
};

Kept kept_in(PlanCache& plans, const char* traffic) {
  const auto plan = plans.find(key_of(traffic));
  if (!plan || plan->algorithm != kOneCopy) return {};
  const std::int64_t bytes = plan->tuning.chunk_bytes;
  return {bytes > 0 ? bytes : OneCopyRule::kNever, plan->doubts == 0};
}

// Stores a measured size, and returns the size to use from now on. Later runs measure again until
// two complete measurements agree, or kMostDoubts runs have measured.
std::int64_t keep(PlanCache& plans, const char* traffic, const OneCopyFound& found) {
  constexpr int kMostDoubts = 4;
  const Kept kept = kept_in(plans, traffic);
  if (kept.is_certain) return kept.least_bytes;
  const auto before = plans.find(key_of(traffic));
  MeasuredPlan plan{kOneCopy, tuning_of(found.least_bytes()), {}};
  const bool again = found.is_whole && before && before->tuning == plan.tuning;
  plan.doubts = (before ? before->doubts : 0) + 1;
  if (again || plan.doubts >= kMostDoubts) plan.doubts = 0;
  for (const OneCopyTrial::Time& time : found.times) {
    plan.candidates.push_back({kOneCopy, tuning_of(time.bytes), time.one_copy_ns});
    plan.candidates.push_back({kTwoCopies, tuning_of(time.bytes), time.two_copies_ns});
  }
  plans.note(key_of(traffic), plan);
  return found.least_bytes();
}

// Creates a segment that the first two ranks of the node share. Returns nullopt on both if the
// second rank cannot map it.
std::optional<Segment> share_area(MPI_Comm here, int node_rank) {
  SegmentName name{};
  std::int64_t is_there = 0;
  constexpr int kBytes = sizeof name;
  if (node_rank == 0) {
    auto made = Segment::create(OneCopyTrial::bytes());
    if (made) name = made->name();
    library_calls.Send(&name, kBytes, handles.byte, 1, 0, here);
    library_calls.Recv(&is_there, 1, handles.int64, 1, 0, here, MPI_STATUS_IGNORE);
    return made && is_there ? std::optional(std::move(*made)) : std::nullopt;
  }
  library_calls.Recv(&name, kBytes, handles.byte, 0, 0, here, MPI_STATUS_IGNORE);
  auto attached = name.bytes > 0 ? Segment::attach(name) : Result<Segment>(Error{});
  is_there = attached ? 1 : 0;
  library_calls.Send(&is_there, 1, handles.int64, 0, 0, here);
  return attached ? std::optional(std::move(*attached)) : std::nullopt;
}

// Compares one copy by the kernel with two copies through shared memory, on the first two ranks of
// the node. The first rank returns the measured rule; the second rank returns `before`.
OneCopyRule measure(MPI_Comm here, int node_rank, const OneCopyRule& before,
                    const std::vector<int>& world_ranks, OneCopy& copies, const Config& config,
                    PlanCache& plans) {
  const auto area = share_area(here, node_rank);
  if (!area) return before;
  OneCopyTrial trial(area->data(), node_rank, {world_ranks[0], world_ranks[1]}, copies);
  if (node_rank == 1) {
    trial.follow();
    return before;
  }
  const auto found = trial.measure(budget_ns(config));
  if (!found.there()) return before;  // the machine was too busy; another run will measure
  return {keep(plans, kOfOne, found.of_one), keep(plans, kOfAll, found.of_all)};
}

}  // namespace

KnownRule known_rule(const Config& config, int ranks, PlanCache& plans) {
  if (config.one_copy == OneCopyUse::always) return {{0, 0, true}};
  if (config.one_copy == OneCopyUse::never) return {};
  const Kept of_one = kept_in(plans, kOfOne), of_all = kept_in(plans, kOfAll);
  // Ranks that share a core would disturb each other's measurement.
  const bool may_measure = config.init_budget_us > 0 && ranks <= sysconf(_SC_NPROCESSORS_ONLN);
  return {{of_one.least_bytes, of_all.least_bytes},
          may_measure && !(of_one.is_certain && of_all.is_certain)};
}

OneCopyRule measured_rule(MPI_Comm here, const OneCopyRule& before,
                          const std::vector<int>& world_ranks, OneCopy& copies,
                          const Config& config, PlanCache& plans) {
  int node_rank = 0;
  library_calls.Comm_rank(here, &node_rank);
  OneCopyRule rule = before;
  if (node_rank <= 1) rule = measure(here, node_rank, before, world_ranks, copies, config, plans);
  library_calls.Bcast(&rule, sizeof rule, handles.byte, 0, here);
  return rule;
}

}  // namespace weft
