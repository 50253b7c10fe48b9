// Reads and writes results of learning in the file of plans. The key of a result consists of Weft's
// version, the machine, the MPI library, the word "learnt", the program, its number of ranks and
// the user's settings, followed by the communicator and the call class. Only rank 0 computes the
// part before the communicator; it sends the other ranks only lines with this beginning.
#include "runtime/adaptive/learnt.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/adaptive/call_classes.h"
#include "runtime/comm/communicators.h"
#include "runtime/job/runtime.h"
#include "select/cycle.h"
#include "select/job_words.h"

namespace weft {
namespace {

std::vector<std::string> command_line() {
  constexpr std::size_t kMostWords = 64;
  std::ifstream file("/proc/self/cmdline");
  std::vector<std::string> words;
  std::string word;
  while (words.size() < kMostWords && std::getline(file, word, '\0')) words.push_back(word);
  return words;
}

// Returns the beginning of all keys of this job. Results whose keys begin differently do not apply
// to this job.
const std::string& prefix(const Config& config) {
  static const std::string words = [&] {
    int ranks = 1;
    library_calls.Comm_size(handles.comm_world, &ranks);
    return plan_key({"weft " WEFT_VERSION, Runtime::platform(), "learnt",
                     program_words(command_line()),
                     std::to_string(ranks) + " ranks" + setting_words(config)}) +
           '|';
  }();
  return words;
}

// Returns whether result `one` is preferred to result `other` with the same key. Results that this
// run has measured are preferred to older ones, and then those of more calls.
bool tells_more(const Learner::Found& one, const Learner::Found& other) {
  if (one.is_new() != other.is_new()) return one.is_new();
  return one.calls > other.calls;
}

// Describes a communicator, for instance "4 ranks on 2 nodes, 3+1" or "2 ranks on one node".
// by_messages: whether the user has switched shared memory off, so that the ranks' nodes are
// unknown.
std::string communicator_words(const Communicator& communicator, bool by_messages) {
  const std::string ranks = std::to_string(communicator.size) + " ranks";
  if (communicator.on_one_node()) return ranks + " on one node";
  if (communicator.nodes) return ranks + " on " + layout_words(*communicator.nodes);
  if (by_messages) return ranks + " by messages";
  return ranks + " on " + std::to_string(communicator.size) + " nodes";
}

// Returns the places in the program as text for the file, for instance "
// at=0x11c9:/home/user/app|0x1200:/home/user/app". Characters in file names that separate fields
// are replaced.
std::string places_words(const CallClassRecord& record) {
  std::string words;
  for (const std::string& place : record.places)
    if (!place.empty()) words += (words.empty() ? " at=" : "|") + plan_key({place});
  return words;
}

// Returns the key for one position in the cycle of `cycle` calls that a call class repeats. The
// first position has the key of the class itself; its entry also contains the length of the cycle.
std::string key_at(const std::string& call_class, std::size_t position, std::size_t cycle) {
  return position == 0 ? call_class : call_class + turn_words(position, cycle);
}

constexpr std::string_view kCycleRemark = "cycle=", kDepthRemark = "depth=";

// Returns the number that the plan's remark `name` contains; 1 if there is no such remark, or if
// the number exceeds `most`.
std::size_t remark_of(const MeasuredPlan& plan, std::string_view name, std::size_t most) {
  const std::string words = ' ' + plan.remarks.substr(0, plan.remarks.find(" at="));
  const std::size_t at = words.find(' ' + std::string(name));
  if (at == std::string::npos) return 1;
  const unsigned long number = std::strtoul(words.c_str() + at + 1 + name.size(), nullptr, 10);
  return number > 1 && number <= most ? number : 1;
}

MeasuredPlan plan_of_call_class(const CallClassRecord& record) {
  const Learner::Found& found = record.found;
  MeasuredPlan plan;
  plan.algorithm = record.variants[static_cast<std::size_t>(found.variant)];
  for (std::size_t variant = 0; variant < record.variants.size(); ++variant)
    if (found.median_ns[variant] > 0)
      plan.candidates.push_back({record.variants[variant], {}, found.median_ns[variant]});
  plan.doubts = found.pairs - found.won;
  if (record.position == 0)  // the following remarks are stored once per call class
    plan.remarks = "trials=" + std::to_string(found.calls_on_trial) +
                   " cost_ns=" + std::to_string(found.trials_cost_ns) + " ";
  if (found.pairs > 0) plan.remarks += "rounds=" + std::to_string(found.pairs) + " ";
  if (found.was_left) plan.remarks += "left=1 ";
  plan.remarks += std::string(kCycleRemark) + std::to_string(record.cycle);
  if (found.depth > 1)
    plan.remarks += ' ' + std::string(kDepthRemark) + std::to_string(found.depth);
  plan.remarks += places_words(record);
  return plan;
}

// Returns the times of a plan's candidates as text, for instance "native=8000000,thread
// ring=6000000".
std::string words_of_candidates(const MeasuredPlan& plan) {
  std::string words;
  for (const MeasuredCandidate& candidate : plan.candidates)
    words += (words.empty() ? "" : ",") + candidate.algorithm + '=' + std::to_string(candidate.ns);
  return words;
}

// Returns the time of each variant in ns, as words_of_candidates() has written it; 0 for variants
// that are missing in `words`.
std::vector<std::int64_t> times_in(const std::string& words, const std::vector<Choice>& variants) {
  std::vector<std::int64_t> times(variants.size());
  std::istringstream stream(words);
  std::string variant, ns;
  while (std::getline(stream, variant, '=') && std::getline(stream, ns, ','))
    if (const auto found = find_variant(variants, variant))
      times[static_cast<std::size_t>(*found)] = std::stoll(ns);
  return times;
}

}  // namespace

// Returns the only object of this process. It is never destroyed, since threads may use it while
// the process exits.
Learnt& Learnt::own() {
  static auto* const all = new Learnt;
  return *all;
}

std::string Learnt::words_of_call_class(const Communicator& communicator,
                                        const CallClassKey& key) const {
  std::string words = communicator_words(communicator, by_messages_);
  // Results are stored separately for calls that cannot take all variants (engine and algorithm):
  // those of a program whose thread level Weft keeps, and those on a shared internal communicator.
  if (in_memory_)
    words += ", level kept";
  else if (!communicator.has_own)
    words += ", on a lane";
  return plan_key({words, words_of(key)});
}

void Learnt::read(Runtime& runtime) {
  by_messages_ = !runtime.config.node_memory;
  in_memory_ = runtime.in_memory_only();
  int rank = 0;
  library_calls.Comm_rank(handles.comm_world, &rank);
  std::string text;
  if (rank == 0)
    for (const auto& [key, plan] : runtime.plans.with_prefix(prefix(runtime.config)))
      text += key.substr(prefix(runtime.config).size()) + '\t' + plan.algorithm + '\t' +
              words_of_candidates(plan) + '\t' +
              std::to_string(remark_of(plan, kCycleRemark, kLongestCycle)) + '\t' +
              std::to_string(remark_of(plan, kDepthRemark, Learner::kMostInFlight)) + '\n';
  std::int64_t bytes = static_cast<std::int64_t>(text.size());
  library_calls.Bcast(&bytes, 1, handles.int64, 0, handles.comm_world);
  // Nothing is read then. This avoids a std::istringstream, whose creation makes system calls.
  if (bytes == 0) return;
  text.resize(static_cast<std::size_t>(bytes));
  library_calls.Bcast(text.data(), static_cast<int>(bytes), handles.byte, 0, handles.comm_world);
  std::istringstream lines(text);
  std::string key, variant, times, cycle, depth;
  while (std::getline(lines, key, '\t') && std::getline(lines, variant, '\t') &&
         std::getline(lines, times, '\t') && std::getline(lines, cycle, '\t') &&
         std::getline(lines, depth))
    known_[key] = {variant, times, std::stoul(cycle), std::stoi(depth)};
}

std::vector<Learner::Known> Learnt::find(const Communicator& communicator, const CallClassKey& key,
                                         const std::vector<Choice>& variants) const {
  const std::string call_class = words_of_call_class(communicator, key);
  const auto first = known_.find(call_class);
  const std::size_t cycle = first == known_.end() ? 0 : first->second.cycle;
  std::vector<Learner::Known> known;
  for (std::size_t position = 0; position < cycle; ++position) {
    const auto found = known_.find(key_at(call_class, position, cycle));
    if (found == known_.end()) return {};
    const auto variant = find_variant(variants, found->second.variant);
    if (!variant) return {};
    std::vector<std::int64_t> times = times_in(found->second.times, variants);
    const std::int64_t period_ns = times[static_cast<std::size_t>(*variant)];
    if (period_ns <= 0) return {};
    known.push_back({*variant, period_ns, found->second.depth, std::move(times)});
  }
  return known;
}

void Learnt::note(const Communicator& communicator) {
  const CallClasses* const call_classes = communicator.attributes.find<CallClasses>();
  if (!call_classes) return;
  for (CallClassRecord& record : call_classes->records(communicator))
    note(communicator, std::move(record));
}

void Learnt::note(const Communicator& communicator, CallClassRecord record) {
  constexpr std::size_t kMost = 1000;  // limit of the number of entries
  record.key = words_of_call_class(communicator, record.call_class_key);
  const std::string key = key_at(record.key, record.position, record.cycle);
  const std::lock_guard lock(mutex_);
  const auto known = records_.find(key);
  if (known == records_.end() && records_.size() < kMost)
    records_.emplace(key, std::move(record));
  else if (known != records_.end() && tells_more(record.found, known->second.found))
    known->second = std::move(record);
}

// Returns whether a record belongs to the sequence of calls (cycle) that is stored for its call
// class. Several communicators with the same key may have found cycles of different lengths; the
// record of position 0 has the length that counts.
bool Learnt::is_of_its_call_class(const CallClassRecord& record) const {
  const auto first = records_.find(record.key);
  return first != records_.end() && first->second.cycle == record.cycle;
}

LearntReport Learnt::report(const TrialBudget& budget) const {
  LearntReport report;
  for (const auto& [key, record] : records_)
    if (is_of_its_call_class(record)) {
      report.call_classes.push_back(record);
      if (record.position == 0) report.won_ns += record.found.won_ns;
    }
  report.trials_cost_ns = budget.spent_ns();
  return report;
}

std::vector<PlanCache::Entry> Learnt::plans(const Config& config) const {
  std::vector<PlanCache::Entry> plans;
  for (const auto& [key, record] : records_)
    if (record.rank == 0 && record.found.is_new() && is_of_its_call_class(record))
      plans.emplace_back(prefix(config) + key, plan_of_call_class(record));
  return plans;
}

}  // namespace weft
