// Contains the table of all options. Each entry ends with the function that parses its variable
// and, if ranks must agree on it, with the function that returns its fact. Ranks may differ in the
// split of trees, transfers, watchdog, output files, file of plans (one rank reads it and sends the
// plans to the others), shared heap, XPMEM and copies by the kernel (the ranks of a node agree at
// run time on what all of them can do).
#include "base/options.h"

#include <sys/stat.h>

#include <cctype>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <string>
#include <utility>

#include "base/first_rank.h"
#include "base/quoted.h"

namespace weft {
namespace {

using Group = OptionGroup;
using Text = std::string_view;

constexpr const char* kSharedHeapBytes = "65536";

// Stores a parsed value in `field`, or returns the parser's error.
template <class T>
Result<bool> put(Result<T> value, T& field) {
  if (!value) return value.error();
  field = std::move(*value);
  return true;
}

// Parses "1" or "0" into `on`. An empty value counts as 0, like a variable that is not set.
Result<bool> read_switch(const char* variable, Text text, bool& on) {
  if (text != "0" && text != "1" && !text.empty())
    return Error{std::string(variable) + " is 1 or 0, not " + in_quotes(text)};
  on = text == "1";
  return true;
}

Result<bool> read_blocking(Text text, Config& config) {
  bool always = false;
  if (auto read = read_switch("WEFT_BLOCKING", text, always); !read) return read;
  if (!text.empty()) config.blocking = always ? Config::Blocking::always : Config::Blocking::never;
  return true;
}

Result<bool> read_summary(Text text, Config& config) {
  constexpr Text kJson = "json:";
  if (text.size() > kJson.size() && text.substr(0, kJson.size()) == kJson)
    config.summary_json_file = text.substr(kJson.size());
  else if (text == "1")
    config.summary = true;
  else if (text != "0" && !text.empty())
    return Error{"WEFT_SUMMARY is 1, 0 or json:FILE, not " + in_quotes(text)};
  return true;
}

Result<bool> read_shared_heap(Text text, Config& config) {
  if (text.empty()) return true;
  return put(parse_number(text, 4096, "the shared heap (BYTES of the smallest allocation)"),
             config.shared_heap_bytes);
}

// Returns whether the file exists and contains something other than measured plans, so that it must
// not be overwritten. Returns false for a file that cannot be read; that error is reported when the
// plans are read.
bool holds_something_else(const std::string& name) {
  struct stat status;
  if (stat(name.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  std::ifstream file(name, std::ios::binary);
  std::string begin(kPlansBegin.size(), '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return file.gcount() > 0 && begin != kPlansBegin;
}

// Stores the name of the file of measured plans. Only rank 0 checks and reads the file, since a job
// may have thousands of ranks; it sends the plans to the other ranks.
Result<bool> read_plan_cache(Text text, Config& config) {
  config.plan_cache_file = text == "none" ? "" : text;
  return is_first_rank() ? check_plan_cache(config.plan_cache_file) : true;
}

Fact fact(const char* name, const std::string& value) {
  return {name, value, value};
}

const char* on_or_off(bool on) {
  return on ? "on" : "off";
}

const char* words_of(Config::Blocking blocking) {
  switch (blocking) {
    case Config::Blocking::by_rule:
      return "by the rule of engine auto";
    case Config::Blocking::always:
      return "on";
    case Config::Blocking::never:
      return "off";
  }
  return "";
}

std::string percent_words(double percent) {
  char words[32];
  std::snprintf(words, sizeof words, "%g%%", percent);
  return words;
}

constexpr Option kOptions[] = {
    {Group::engine, "--engine", "E", kEngineChoices, "auto", "WEFT_ENGINE", nullptr,
     "Selects who carries out the collectives, and when. native: the MPI library by itself. "
     "assist: the MPI library, driven by a progress thread. function: Weft, whenever the program "
     "enters MPI. thread: Weft, on a progress thread. tcc: the MPI library's blocking calls, on a "
     "thread. agent: Weft, on one thread for all ranks of a node whose threads share a core. auto: "
     "chosen for each call.",
     [](Text text, Config& config) { return put(parse_engine(text), config.engine); },
     [](const Config& config) { return engine_fact("--engine", config.engine); }},
    {Group::engine, "--placement", "P", kPlacementChoices, "bind", "WEFT_PLACEMENT", nullptr,
     "Selects the core of each rank's progress thread. bind: the rank's own core. numa: a free "
     "core of the rank's NUMA node. odd-even: free cores, different ones for neighbouring ranks. "
     "pack:K: K threads on each core that is set aside. list: the named cores, one for each rank "
     "of a node.",
     [](Text text, Config& config) { return put(parse_placement(text), config.placement); },
     [](const Config& config) { return placement_fact("--placement", config.placement); }},
    {Group::engine, "--backoff", "B", kBackoffChoices, "quiet", "WEFT_BACKOFF", nullptr,
     "Selects what the progress thread does after a poll that found nothing. yield: it gives up "
     "the core. spin: it polls again. sleep:US: it sleeps for US microseconds. quiet: it sleeps "
     "for most of the time that a round of the schedule takes, and polls often near its end.",
     [](Text text, Config& config) {
       config.asks_for_baton = text == kBaton;
       return put(parse_backoff(text), config.backoff);
     }},
    {Group::engine, "--transfers", "SIZE", kTransfersChoices, "auto", "WEFT_TRANSFERS", nullptr,
     "Lets the progress thread also progress the program's own messages: those of 128 KiB or more "
     "(auto), those of SIZE or more, or none (off).",
     [](Text text, Config& config) {
       return put(parse_transfers(text), config.least_transfer_bytes);
     }},
    {Group::engine, "--windows", "W", kWindowsChoices, "active", "WEFT_WINDOWS", nullptr,
     "Says to which windows (MPI_Win) of the program the thread gives time while the program "
     "computes: those that their rank has opened by MPI_Win_post or MPI_Win_fence, from the SIZE "
     "of --transfers on (active), or also those that other ranks may lock (passive).",
     [](Text text, Config& config) { return put(parse_windows(text), config.passive_windows); },
     [](const Config& config) {
       return fact("--windows", config.passive_windows ? "passive" : "active");
     }},
    {Group::engine, "--split", "S", kSplitChoices, "auto", "WEFT_SPLIT", nullptr,
     "Selects how many levels of a tree, counted from its leaves, run on the program's cores, "
     "inside the call that starts or completes the collective; the progress threads carry out the "
     "other levels. auto: as many as the model predicts to be best. S may be more than 3.",
     [](Text text, Config& config) { return put(parse_split(text), config.split_levels); }},
    {Group::engine, "--blocking", "0", "",
     "engine auto takes those that shared memory serves, and learns about the others over several "
     "nodes",
     "WEFT_BLOCKING", "1",
     "Carries out all blocking collectives by Weft's schedules; with --blocking=0, none of them.",
     read_blocking,
     [](const Config& config) { return fact("--blocking", words_of(config.blocking)); }},
    {Group::engine, "--reproducible", "0", "", "off", "WEFT_REPRODUCIBLE", "1",
     "Makes the results of reductions identical to the last bit, however the ranks are spread over "
     "nodes. Implies --blocking.",
     [](Text text, Config& config) {
       return read_switch("WEFT_REPRODUCIBLE", text, config.reproducible);
     },
     [](const Config& config) { return fact("--reproducible", on_or_off(config.reproducible)); }},

    {Group::reports, "--summary", "json:FILE", "", "off", "WEFT_SUMMARY", "1",
     "Prints at the end what Weft handled and how much of it was hidden; with =json:FILE, writes "
     "that to a file.",
     read_summary,
     [](const Config& config) {
       return fact("--summary", on_or_off(config.summary || !config.summary_json_file.empty()));
     }},
    {Group::reports, "--trace", "FILE", "", "off", "WEFT_TRACE", nullptr,
     "Writes a timeline to FILE, which trace viewers for Chrome's format show.",
     [](Text text, Config& config) {
       return put(Result<std::string>(std::string(text)), config.trace_file);
     },
     [](const Config& config) { return fact("--trace", on_or_off(!config.trace_file.empty())); }},
    {Group::reports, "--watchdog", "SECONDS", "", "off", "WEFT_WATCHDOG", nullptr,
     "Reports, on each rank that has waited in one MPI call for so many seconds, which call that "
     "is and for which ranks it waits.",
     [](Text text, Config& config) {
       return put(parse_number(text, 0, "watchdog SECONDS"), config.watchdog_s);
     }},
    {Group::reports, kVerboseOption, "", "", "off", "", nullptr,
     "Says which of Weft's libraries is loaded, and why."},

    {Group::memory, "--transport", "T", kTransportChoices, "auto", "WEFT_TRANSPORT", nullptr,
     "Selects how ranks of one node communicate. auto: through shared memory. mpi: by messages; "
     "engine auto then leaves a job inside one node to the MPI library.",
     [](Text text, Config& config) { return put(parse_transport(text), config.node_memory); },
     [](const Config& config) { return fact("--transport", config.node_memory ? "auto" : "mpi"); }},
    {Group::memory, "--shared-heap", "BYTES", "", "off", "WEFT_SHARED_HEAP", kSharedHeapBytes,
     "Takes large allocations of the program (64 KiB or more, or BYTES or more, a plain number "
     "from 4096 on) from memory that the ranks of a node share, so that collectives on them need "
     "no copy.",
     read_shared_heap},
    {Group::memory, "--xpmem", "X", kXpmemChoices, "auto", "WEFT_XPMEM", nullptr,
     "Selects whether other large buffers are mapped instead of copied: where the system has XPMEM "
     "(auto), never (off), or by the XPMEM library at /PATH.",
     [](Text text, Config& config) { return put(parse_xpmem(text), config.xpmem); }},
    {Group::memory, "--one-copy", "C", kOneCopyChoices, "auto", "WEFT_ONE_COPY", nullptr,
     "Selects whether the kernel copies long blocks between ranks of a node directly, instead of "
     "two copies through shared memory. auto: where that was measured to be faster on this "
     "machine. on: wherever the kernel permits it. off: never.",
     [](Text text, Config& config) { return put(parse_one_copy(text), config.one_copy); }},

    {Group::tuning, kAlgorithmOption, "KIND=NAME", "", "Weft chooses for each call",
     "WEFT_ALGORITHM_KIND", nullptr,
     "Names the algorithm of one kind of collective, such as allreduce=ring; `weft schedule "
     "--list` shows them; KIND=native leaves these calls to the MPI library. "
     "The option may be given several times. Its variable has the kind in "
     "capitals: WEFT_ALGORITHM_ALLREDUCE=ring."},
    {Group::tuning, "--learn", "L", kLearnChoices, "on", "WEFT_LEARN", nullptr,
     "Lets engine auto measure variants while the program runs. on: it keeps what it finds for "
     "later runs. use: it takes what earlier runs found and measures nothing. off: it goes by its "
     "rule.",
     [](Text text, Config& config) { return put(parse_learn(text), config.learn); },
     [](const Config& config) { return fact("--learn", learn_word(config.learn)); }},
    {Group::tuning, "--learning-budget", "PERCENT", "", "1", "WEFT_LEARNING_BUDGET", nullptr,
     "Limits what the trials of engine auto may cost, against the variant in use, as a share of "
     "the time, after the first 20 to 30 trials of a kind of call. 0: no trials; what is known is "
     "used.",
     [](Text text, Config& config) {
       return put(parse_percent(text, "the budget of learning (WEFT_LEARNING_BUDGET)"),
                  config.learning_budget);
     },
     [](const Config& config) {
       return fact("--learning-budget", percent_words(config.learning_budget));
     }},
    {Group::tuning, "--init-budget", "TIME", "", "10ms", "WEFT_INIT_BUDGET", nullptr,
     "Limits how long the initialisation of a persistent collective, or the first blocking call of "
     "its kind in a node, may measure, such as 500us, 10ms or 1s. 0: nothing is measured, nor "
     "whether one copy is faster.",
     [](Text text, Config& config) {
       return put(parse_duration(text, "the budget of an initialisation (WEFT_INIT_BUDGET)"),
                  config.init_budget_us);
     },
     [](const Config& config) {
       return fact("--init-budget", std::to_string(config.init_budget_us) + "us");
     }},
    {Group::tuning, "--plan-cache", "FILE", "", "~/.cache/weft/plans", "WEFT_PLAN_CACHE", nullptr,
     "Names the file that keeps what was measured and learnt. none: every run begins anew.",
     read_plan_cache},

    {Group::mpi, "--mpi", "M", kMpiChoices, "found out", "WEFT_MPI", nullptr,
     "Names the MPI library of a program that does not show which one it uses."},

    {Group::general, kHelpOption, "", "", "", "", nullptr, "Shows this help."},
};

}  // namespace

// Returns the fact about an engine on which all ranks must agree. Ranks may differ between engines
// function and thread, because these exchange the same messages.
Fact engine_fact(const std::string& name, Engine engine) {
  const bool rounds = engine == Engine::function || engine == Engine::thread;
  return {name, engine_name(engine), rounds ? "rounds" : engine_name(engine)};
}

// Returns the fact about the placement on which all ranks must agree. Ranks may place their threads
// on different cores, but all or none must use policy `bind`, because the other policies need
// communication between the ranks of a node.
Fact placement_fact(const std::string& name, const PlacementPolicy& placement) {
  const bool bound = placement.kind == PlacementPolicy::Kind::bind;
  return {name, placement_words(placement), bound ? "bind" : "elsewhere"};
}

// Returns an error if the file exists but does not contain measured plans. It remembers its last
// answer, because it is called for each line of a site file. The remembered answer is never
// destroyed, because this may be called while the process exits.
Result<bool> check_plan_cache(const std::string& name) {
  struct Looked {
    std::mutex mutex;
    std::string name{};
    bool is_something_else = false;
  };
  static Looked& last = *new Looked;
  const std::lock_guard lock(last.mutex);
  if (name != last.name) last.is_something_else = holds_something_else(name);
  last.name = name;
  if (!last.is_something_else) return true;
  return Error{"the file of plans " + in_quotes(name) +
               " is nothing of Weft's, and stays as it is: name another with --plan-cache, or "
               "none"};
}

std::string algorithm_variable(Kind kind) {
  std::string name = kAlgorithmVariable;
  for (const char* c = kind_name(kind); *c; ++c) name += static_cast<char>(std::toupper(*c));
  return name;
}

std::span<const Option> option_table() {
  return kOptions;
}

}  // namespace weft
