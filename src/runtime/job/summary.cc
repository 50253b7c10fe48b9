// Implements the summary of calls. Calls are counted by relaxed atomics, so that counting costs
// little. The counts of the ranks are added up only once, at the end.
#include "runtime/job/summary.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <vector>

#include "base/amounts.h"
#include "base/log.h"
#include "base/started.h"
#include "base/whole_file.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"

namespace weft {
namespace {

constexpr std::array<const char*, kReasons> kReasonTexts = {
    "engine native",
    "needs MPI calls on a thread, which engine auto does without inside one node",
    "blocking, and not one that the node's memory serves; --blocking takes it all the same",
    "the rule takes native here",
    "engine auto tried native",
    "engine auto has learnt to take native",
    "the MPI library's own call was measured, and is as fast here",
    "communicator with one rank, two groups or processes of other jobs, or not made by an "
    "intercepted call",
    "communicator of a session",
    "communicator beside so many others that Weft has no tags left for its messages",
    "no topology, or a grid in which both neighbors of a dimension are one rank",
    "nothing to move",
    "more than 2 GiB",
    "arguments that the library must judge",
    "--algorithm KIND=native"};

// Returns the kind of collective of an MPI function, for instance "allreduce" for
// MPI_Iallreduce_init_c.
std::string kind_of_call(CallId id) {
  std::string_view name = call_name(id);
  name.remove_prefix(std::string_view("MPI_").size());
  if (name.starts_with('I')) name.remove_prefix(1);
  for (const std::string_view end : {"_c", "_init"})
    if (name.ends_with(end)) name.remove_suffix(end.size());
  std::string kind(name);
  kind[0] = static_cast<char>(std::tolower(kind[0]));
  return kind;
}

std::string reason_text(CallId id, std::size_t reason) {
  const bool named = reason == static_cast<std::size_t>(Reason::kind_left);
  return named ? "--algorithm " + kind_of_call(id) + "=native" : kReasonTexts[reason];
}

constexpr std::size_t kInMemory = 6 + kReasons;
constexpr std::size_t kDirect = kInMemory + 1;
constexpr std::size_t kWaitedForHandled = kDirect + 1;
constexpr std::size_t kTimeInside = kWaitedForHandled + 1;
constexpr std::size_t kNumbers = kTimeInside + 1;
using CallNumbers = std::array<std::int64_t, kNumbers>;

std::int64_t seen(const CallNumbers& numbers) {
  std::int64_t total = numbers[0];
  for (std::size_t r = 0; r < kReasons; ++r) total += numbers[6 + r];
  return total;
}

constexpr const char* kNone = "–";

// Returns the text right-aligned in `columns` columns, after a space. It counts characters rather
// than bytes, since µ takes two bytes but one column.
std::string cell(const std::string& text, std::size_t columns) {
  const auto is_first = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  const auto used = static_cast<std::size_t>(std::count_if(text.begin(), text.end(), is_first));
  return " " + std::string(columns > used ? columns - used : 0, ' ') + text;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

std::string mean_time(std::int64_t ns, std::int64_t calls) {
  return calls > 0 ? time_words(static_cast<double>(ns) / 1e9 / static_cast<double>(calls)) : kNone;
}

std::string line_of(const std::string& call, const std::array<std::string, 8>& cells) {
  constexpr std::array<std::size_t, 8> kColumns = {8, 8, 9, 8, 7, 11, 8, 8};
  std::string text = "  " + call + std::string(call.size() < 22 ? 22 - call.size() : 0, ' ');
  for (std::size_t i = 0; i < cells.size(); ++i) text += cell(cells[i], kColumns[i]);
  return text + "\n";
}

std::string heading() {
  return line_of("call",
                 {"calls", "by Weft", "data", "time", "of run", "start–wait", "waited", "hidden"});
}

// Returns the time in seconds that a rank has spent inside blocking calls of this MPI function and
// in completion calls for it, as a mean over all ranks.
double inside_s(const CallNumbers& n, int ranks) {
  return static_cast<double>(n[4] + n[kTimeInside]) / 1e9 / ranks;
}

// Returns the line of the summary about an MPI function. The time inside calls is a mean over all
// ranks. The times from start to wait, and in the wait, are means over the completed collectives.
std::string text_line(CallId id, const CallNumbers& n, double seconds, int ranks) {
  const double inside = inside_s(n, ranks);
  const bool timed = n[4] + n[kTimeInside] > 0;
  const double hidden =
      n[5] > 0 ? 1.0 - static_cast<double>(n[kWaitedForHandled]) / static_cast<double>(n[5]) : 0;
  std::string text =
      line_of(call_name(id),
              {std::to_string(seen(n)), std::to_string(n[0]), data_words(n[1]),
               timed ? time_words(inside) : kNone, timed ? percent(inside / seconds) : kNone,
               mean_time(n[3], n[2]), mean_time(n[4], n[2]), n[5] > 0 ? percent(hidden) : kNone});
  for (std::size_t r = 0; r < kReasons; ++r)
    if (n[6 + r] > 0)
      text += "      passed on " + std::to_string(n[6 + r]) + ": " + reason_text(id, r) + "\n";
  return text;
}

// Returns which share of the ranks' run time all counted calls have taken.
double share_of_calls(const std::vector<CallNumbers>& totals, double seconds, int ranks) {
  double share = 0;
  for (const CallNumbers& n : totals)
    if (seen(n) > 0) share += inside_s(n, ranks) / seconds;
  return share;
}

std::string job_command() {
  const char* const command = std::getenv(kCommandVariable);
  return command ? command : "";
}

// Returns the last lines of the summary. They tell how much time can still be gained, and how to
// find out whether Weft has helped.
std::string last_lines(const std::vector<CallNumbers>& totals, double seconds, int ranks,
                       Engine engine, bool several_threads) {
  // Slightly more than 1, since `seconds` was measured on rank 0 only.
  constexpr double kMoreThanAll = 1.01;
  const double share = share_of_calls(totals, seconds, ranks);
  std::string text;
  if (share > 0)
    text = "  these calls took " + percent(share) + " of the ranks' time" +
           (several_threads && share > kMoreThanAll ? ", since several threads waited at a time"
                                                    : "") +
           "\n";
  const bool chosen = engine != Engine::automatic && engine != Engine::native;
  const std::string with =
      chosen ? "--with '--engine " + std::string(engine_name(engine)) + "' " : "";
  const std::string command = job_command();
  return text + "  did it help? weft try " + with + "-- " +
         (command.empty() ? "mpiexec ... ./app" : command) +
         " runs it without Weft and with it, in turn\n";
}

// Returns the line about the application's own large messages; "" if there were none.
std::string transfers_line(std::int64_t transfers, std::int64_t least_bytes) {
  if (transfers == 0) return "";
  return "  messages of the program's own that Weft's thread looked after, from " +
         data_words(least_bytes) + " on: " + std::to_string(transfers) + "\n";
}

std::string windows_line(std::int64_t windows) {
  if (windows == 0) return "";
  return "  windows that Weft's thread looked after, since other ranks may lock them: " +
         std::to_string(windows) + " on all ranks\n";
}

std::string one_copy_line(std::int64_t bytes) {
  if (bytes == 0) return "";
  return "  data that the system copied once, in place of two copies: " + data_words(bytes) + "\n";
}

// Returns the line about collectives that core agents have carried out; "" for other engines than
// agent.
std::string agents_line(Engine engine, const Summary::Counted& counted,
                        const std::vector<CallNumbers>& totals) {
  if (engine != Engine::agent) return "";
  std::int64_t completed = 0;
  for (const CallNumbers& n : totals) completed += n[2];
  const std::int64_t by_agents = counted.left_to_agent + counted.led_by_agent;
  return "  left to the agent of a core: " + std::to_string(counted.left_to_agent) +
         " collectives, of which it brought " + std::to_string(counted.ended_by_agent) +
         " to their end; led by the agent of a node: " + std::to_string(counted.led_by_agent) +
         "; as under engine thread: " +
         std::to_string(std::max<std::int64_t>(completed - by_agents, 0)) + "\n";
}

std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    char code[8];
    if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(code, sizeof code, "\\u%04x", c);
      quoted += code;
    } else {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S+00:00", gmtime_r(&now, &parts));
  return text;
}

std::string host() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

// Returns the JSON members with which every result of Weft begins. python/weft/data/stored.py reads
// them.
std::string json_head(const char* mpi, int ranks, double seconds, double share) {
  char figures[96];
  std::snprintf(figures, sizeof figures, "{\"seconds\":%.6f,\"calls_share\":%.6f}", seconds, share);
  return "{\"schema\":\"weft-summary/2\",\"weft\":\"" WEFT_VERSION "\",\"date\":\"" + date() +
         "\",\"host\":" + json_string(host()) + ",\"mpi\":" + json_string(mpi) +
         ",\"ranks\":" + std::to_string(ranks) + ",\"command\":" + json_string(job_command()) +
         ",\"headline\":" + figures;
}

std::string json_entry(CallId id, const CallNumbers& n) {
  std::string text =
      "{\"call\":\"" + std::string(call_name(id)) + "\",\"seen\":" + std::to_string(seen(n)) +
      ",\"handled\":" + std::to_string(n[0]) + ",\"in_memory\":" + std::to_string(n[kInMemory]) +
      ",\"without_copy\":" + std::to_string(n[kDirect]) + ",\"bytes\":" + std::to_string(n[1]) +
      ",\"completed\":" + std::to_string(n[2]) +
      ",\"start_to_wait_us\":" + std::to_string(n[3] / 1000) +
      ",\"waited_us\":" + std::to_string(n[4] / 1000) +
      ",\"inside_us\":" + std::to_string(n[kTimeInside] / 1000) +
      ",\"duration_us\":" + std::to_string(n[5] / 1000) +
      ",\"waited_for_handled_us\":" + std::to_string(n[kWaitedForHandled] / 1000) +
      ",\"passed_on\":{";
  bool first = true;
  for (std::size_t r = 0; r < kReasons; ++r) {
    if (n[6 + r] == 0) continue;
    text += std::string(first ? "" : ",") + "\"" + reason_text(id, r) +
            "\":" + std::to_string(n[6 + r]);
    first = false;
  }
  return text + "}}";
}

const char* source_name(PlanRecord::Source source) {
  switch (source) {
    case PlanRecord::Source::measured:
      return "measured";
    case PlanRecord::Source::cache:
      return "cache";
    case PlanRecord::Source::rule:
      return "rule";
  }
  return "";
}

// Returns the JSON members that describe an algorithm and its parameters.
std::string json_members(const std::string& algorithm, const Tuning& tuning) {
  return "\"algorithm\":\"" + algorithm +
         "\",\"part_bytes\":" + std::to_string(tuning.chunk_bytes) +
         ",\"radix\":" + std::to_string(tuning.radix) +
         ",\"radix_across\":" + std::to_string(tuning.radix_across);
}

std::string json_entry(const PlanRecord& record) {
  std::string text = "{\"call\":\"" + std::string(call_name(record.id)) +
                     "\",\"bytes\":" + std::to_string(record.bytes) +
                     ",\"ranks\":" + std::to_string(record.ranks) + ",\"operation\":\"" +
                     record.operation + "\"," +
                     json_members(record.plan.algorithm, record.plan.tuning) + ",\"source\":\"" +
                     source_name(record.source) + "\",\"why\":\"" + record.why +
                     "\",\"trial_bytes\":" + std::to_string(record.trial_bytes) +
                     ",\"doubts\":" + std::to_string(record.plan.doubts) +
                     ",\"spent_ns\":" + std::to_string(record.spent_ns) + ",\"candidates\":[";
  for (const MeasuredCandidate& candidate : record.plan.candidates)
    text += std::string(text.back() == '[' ? "" : ",") + "{" +
            json_members(candidate.algorithm, candidate.tuning) +
            ",\"ns\":" + std::to_string(candidate.ns) + "}";
  return text + "]}";
}

void write_json(const std::string& file_name, const Config& config, const char* mpi, int ranks,
                double seconds, const std::vector<CallNumbers>& totals,
                const Summary::Counted& counted, const std::vector<PlanRecord>& plans,
                const LearntReport& learnt) {
  WholeFile file(file_name);
  file.add(json_head(mpi, ranks, seconds, share_of_calls(totals, seconds, ranks)));
  char line[256];
  std::snprintf(line, sizeof line, ",\"engine\":\"%s\",\"seconds\":%.6f,",
                engine_name(config.engine), seconds);
  file.add(line);
  std::snprintf(
      line, sizeof line,
      "\"transfers\":%lld,\"windows\":%lld,\"one_copy_bytes\":%lld,"
      "\"left_to_agent\":%lld,\"ended_by_agent\":%lld,\"led_by_agent\":%lld,",
      static_cast<long long>(counted.transfers), static_cast<long long>(counted.windows),
      static_cast<long long>(counted.one_copy_bytes), static_cast<long long>(counted.left_to_agent),
      static_cast<long long>(counted.ended_by_agent), static_cast<long long>(counted.led_by_agent));
  file.add(line);
  file.add("\"calls\":[");
  bool first = true;
  for (int i = 0; i < kCalls; ++i) {
    const CallNumbers& n = totals[static_cast<std::size_t>(i)];
    if (seen(n) == 0) continue;
    file.add((first ? "\n" : ",\n") + json_entry(static_cast<CallId>(i), n));
    first = false;
  }
  file.add("],\"plans\":[");
  for (std::size_t i = 0; i < plans.size(); ++i)
    file.add((i ? ",\n" : "\n") + json_entry(plans[i]));
  std::snprintf(line, sizeof line, "],\"trials_cost_us\":%.3f,\"won_us\":%.3f,\"learnt\":[",
                static_cast<double>(learnt.trials_cost_ns) / 1e3,
                static_cast<double>(learnt.won_ns) / 1e3);
  file.add(line + json_of(learnt) + "]}\n");
  if (const int error = file.finish()) say(not_written("the summary", file_name, error));
}

}  // namespace

void Summary::count_handled(CallId id, std::int64_t bytes, bool in_memory) {
  Counters& counters = counters_[static_cast<std::size_t>(id)];
  counters.handled.fetch_add(1, std::memory_order_relaxed);
  counters.bytes.fetch_add(bytes, std::memory_order_relaxed);
  counters.in_memory.fetch_add(in_memory ? 1 : 0, std::memory_order_relaxed);
}

void Summary::direct(CallId id) {
  if (wanted_)
    counters_[static_cast<std::size_t>(id)].direct.fetch_add(1, std::memory_order_relaxed);
}

void Summary::passed_on(CallId id, Reason reason) {
  if (!wanted_) return;
  counters_[static_cast<std::size_t>(id)].passed_on[static_cast<std::size_t>(reason)].fetch_add(
      1, std::memory_order_relaxed);
}

void Summary::planned(PlanRecord record) {
  // The limit for the number of records. A program with more initialisations makes the same ones
  // again and again.
  constexpr std::size_t kMostPlans = 1000;
  if (!wanted_) return;
  const std::lock_guard lock(plans_mutex_);
  if (plans_.size() < kMostPlans) plans_.push_back(std::move(record));
}

void Summary::completed(CallId id, const Times& times, std::int64_t ended_ns) {
  Counters& counters = counters_[static_cast<std::size_t>(id)];
  counters.completed.fetch_add(1, std::memory_order_relaxed);
  counters.start_to_wait_ns.fetch_add(times.waiting_since - times.started,
                                      std::memory_order_relaxed);
  counters.waited_ns.fetch_add(times.waited, std::memory_order_relaxed);
  if (times.finished == 0) return;
  // A completion call for several requests may last longer than this collective.
  const std::int64_t until = std::min(times.finished, ended_ns);
  const std::int64_t waited_ns = std::max<std::int64_t>(until - times.waiting_since, 0);
  counters.duration_ns.fetch_add(times.finished - times.started, std::memory_order_relaxed);
  counters.waited_for_handled_ns.fetch_add(waited_ns, std::memory_order_relaxed);
}

void Summary::report(const Config& config, const std::string& remark, const char* mpi,
                     Counted resources, const LearntReport& learnt, MPI_Comm all, int rank,
                     int ranks) {
  if (!wanted_) return;
  const double seconds = static_cast<double>(until_ns_ - since_ns_) / 1e9;
  std::vector<CallNumbers> own(kCalls), totals(kCalls);
  for (std::size_t i = 0; i < kCalls; ++i) {
    const Counters& c = counters_[i];
    own[i] = {c.handled, c.bytes, c.completed, c.start_to_wait_ns, c.waited_ns, c.duration_ns};
    for (std::size_t r = 0; r < kReasons; ++r) own[i][6 + r] = c.passed_on[r];
    own[i][kInMemory] = c.in_memory;
    own[i][kDirect] = c.direct;
    own[i][kWaitedForHandled] = c.waited_for_handled_ns;
    own[i][kTimeInside] = c.inside_ns;
  }
  library_calls.Reduce(own.data(), totals.data(), static_cast<int>(kCalls * kNumbers),
                       handles.int64, handles.sum, 0, all);
  resources.left_to_agent = left_to_agent_;
  resources.led_by_agent = led_by_agent_;
  Counted counted;
  library_calls.Reduce(&resources, &counted, sizeof counted / sizeof(std::int64_t), handles.int64,
                       handles.sum, 0, all);
  if (rank != 0) return;
  if (!config.summary_json_file.empty())
    write_json(config.summary_json_file, config, mpi, ranks, seconds, totals, counted, plans_,
               learnt);
  if (!config.summary) return;
  const std::string why = remark.empty() ? "" : "\n  " + remark;
  char elapsed[64];
  std::snprintf(elapsed, sizeof elapsed, ", %.2f s from MPI_Init to MPI_Finalize", seconds);
  std::string text = "summary of " + std::to_string(ranks) + " ranks, " + mpi + ", engine " +
                     engine_name(config.engine) + elapsed + why + "\n" + heading();
  bool any = false;
  for (int i = 0; i < kCalls; ++i) {
    const CallNumbers& n = totals[static_cast<std::size_t>(i)];
    if (seen(n) == 0) continue;
    text += text_line(static_cast<CallId>(i), n, seconds, ranks);
    any = true;
  }
  text += any ? last_lines(totals, seconds, ranks, config.engine, counted.ranks_with_threads > 0)
              : "  no collective that Weft knows was called\n";
  text += text_of(learnt, seconds);
  text += agents_line(config.engine, counted, totals);
  text += transfers_line(counted.transfers, config.least_transfer_bytes);
  text += windows_line(counted.windows);
  text += one_copy_line(counted.one_copy_bytes);
  text.pop_back();
  say(text);
}

}  // namespace weft
