// Config: the user's settings, read from WEFT_* variables, which `weft run` sets from its options
// (table in base/options.h). The library and `weft run` share it, so that both accept and refuse
// the same values.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/kind.h"
#include "base/result.h"

namespace weft {

// The possible values of options, variables and hints, as messages name them; capital letters are
// placeholders.
inline constexpr const char* kEngineChoices = "native, assist, function, thread, tcc, agent, auto";
inline constexpr const char* kPlacementChoices = "bind, numa, odd-even, pack:K, list:C,C,...";
inline constexpr const char* kSplitChoices = "auto, 0, 1, 2, 3";
inline constexpr const char* kBackoffChoices = "yield, spin, sleep:US, baton, quiet";
inline constexpr const char* kTransportChoices = "auto, mpi";
inline constexpr const char* kLearnChoices = "on, use, off";
inline constexpr const char* kXpmemChoices = "auto, off, /PATH";
inline constexpr const char* kOneCopyChoices = "auto, on, off";
inline constexpr const char* kTransfersChoices = "auto, off, 64KiB, 1MiB";
inline constexpr const char* kWindowsChoices = "active, passive";

enum class Engine : std::uint8_t { native, assist, function, thread, tcc, agent, automatic };
inline constexpr int kEngines = 7;
// Returns whether a progress thread of each rank carries out Weft's schedules with this engine, at
// least as a fallback.
constexpr bool has_progress_thread(Engine engine) {
  return engine == Engine::thread || engine == Engine::agent;
}

const char* engine_name(Engine engine);
Result<Engine> parse_engine(std::string_view text);

// Tells where progress threads run; topo/placement.h computes the cores.
struct PlacementPolicy {
  enum class Kind : std::uint8_t { bind, numa, odd_even, pack, list } kind = Kind::bind;
  int threads_per_core = 1;  // K of policy pack:K
  std::vector<int> cores;    // list:C,C,…: the thread of local rank r uses entry r modulo length
  bool operator==(const PlacementPolicy&) const = default;
};
Result<PlacementPolicy> parse_placement(std::string_view text);
std::string placement_words(const PlacementPolicy& policy);  // returns the policy in the syntax of
                                                             // parse_placement()

// Tells what a progress thread does after a poll that found nothing: it yields its core, polls
// again at once, sleeps for `sleep_us`, passes its core to other ranks' threads, or sleeps so that
// it polls as rarely as possible.
struct BackOff {
  enum class Kind : std::uint8_t { yield, spin, sleep, baton, quiet } kind = Kind::quiet;
  std::int64_t sleep_us = 0;
  bool operator==(const BackOff&) const = default;
};
Result<BackOff> parse_backoff(std::string_view text);

// Parses WEFT_SPLIT: returns the number of levels of a tree that are left to the caller, or
// Config::kByModel.
Result<int> parse_split(std::string_view text);

// Parses a whole number from `low` on. what: names the setting in the error message.
Result<int> parse_number(std::string_view text, int low, const std::string& what);

// Parses for instance "10ms", "500us", "1s" or "0"; returns microseconds.
Result<std::int64_t> parse_duration(std::string_view text, const std::string& what);

// Parses WEFT_TRANSPORT: returns whether ranks of a node may use shared memory.
Result<bool> parse_transport(std::string_view text);

// Parses WEFT_XPMEM: whether ranks of a node attach each other's memory, or the path of the library
// for it.
Result<std::string> parse_xpmem(std::string_view text);

// Tells when the kernel copies between ranks of a node (shm/one_copy.h): where a measurement found
// it faster (automatic), wherever it can (always), or never.
enum class OneCopyUse : std::uint8_t { automatic, always, never };
Result<OneCopyUse> parse_one_copy(std::string_view text);

// The size in bytes that stands for "off": no transfer is that large.
inline constexpr std::int64_t kNoTransfers = std::numeric_limits<std::int64_t>::max();
// Parses WEFT_TRANSFERS: "auto", "off" or a size such as 65536, 64KiB or 1MiB. Returns the least
// size in bytes of transfers that the progress thread progresses; kNoTransfers for "off".
Result<std::int64_t> parse_transfers(std::string_view text);

// Returns whether the progress thread polls for accesses of which their target is not told.
Result<bool> parse_windows(std::string_view text);

// Parses a share such as 1, 0.5 or 2%; returns percent, at most 100.
Result<double> parse_percent(std::string_view text, const std::string& what);

// Tells how engine auto learns. on: it tries alternatives while the program runs. use: it only uses
// the results of earlier runs. off: it follows the fixed rule. switching (for tests): it changes
// every few calls, regardless of the times.
enum class Learn : std::uint8_t { off, use, on, switching };
Result<Learn> parse_learn(std::string_view text);
const char* learn_word(Learn learn);

// Returns the default file of measured plans; empty if the user has no cache directory.
std::string default_plan_cache();
// The word that a user gives in place of an algorithm's name to leave the calls to the MPI library.
inline constexpr std::string_view kLibrarys = "native";
inline constexpr const char* kOrLibrarys =
    ", or native, which leaves these calls to the MPI library";
// Every version of the file of measured plans begins with these words.
inline constexpr std::string_view kPlansBegin = "# weft plans, ";

struct Config {
  Engine engine = Engine::automatic;
  PlacementPolicy placement;
  BackOff backoff;
  // WEFT_TRANSFERS: the progress thread progresses the application's own messages and other
  // transfers of at least this size while the application computes (runtime/request/transfers.h).
  static constexpr std::int64_t kLargeTransfer = 128 * 1024;
  std::int64_t least_transfer_bytes = kLargeTransfer;
  // WEFT_WINDOWS: the progress thread also polls for accesses to windows that other ranks may lock
  // (runtime/request/windows.h).
  bool passive_windows = false;
  // WEFT_SPLIT: the number of a tree's levels that application threads inside MPI calls advance
  // (coll/split_tree.h). kByModel: the cost model of the split tree decides.
  static constexpr int kByModel = -1;
  int split_levels = kByModel;
  // WEFT_BLOCKING: blocking collectives use Weft's schedules always (1), never (0), or by the rule
  // of engine auto, which uses them inside a node, in shared memory.
  enum class Blocking : std::uint8_t { by_rule, always, never } blocking = Blocking::by_rule;
  // WEFT_REPRODUCIBLE: reductions give bitwise identical results however the ranks are distributed
  // over nodes.
  bool reproducible = false;
  Learn learn = Learn::on;  // WEFT_LEARN: whether engine auto tries alternatives
  // WEFT_LEARNING_BUDGET: the limit for the cost of trials, in percent of the run time; 0 disables
  // trials.
  double learning_budget = 1;
  bool node_memory = true;  // WEFT_TRANSPORT: true for auto; false for mpi, which uses messages
                            // also inside a node
  // WEFT_INIT_BUDGET: how long the initialisation of a persistent collective may measure, in
  // microseconds; 0 disables measuring.
  std::int64_t init_budget_us = 10'000;
  std::string plan_cache_file;  // WEFT_PLAN_CACHE, by default in the user's cache directory; empty
                                // for none
  // WEFT_SHARED_HEAP: allocations of the application of at least this size come from memory that
  // the ranks of a node share (libweft-heap.so reads the variable); 0 disables it.
  int shared_heap_bytes = 0;
  OneCopyUse one_copy = OneCopyUse::automatic;  // WEFT_ONE_COPY: when the kernel copies between
                                                // ranks of a node
  // WEFT_XPMEM: auto, off, or the path of a library; see shm/xpmem.h.
  std::string xpmem = "auto";
  int watchdog_s = 0;              // WEFT_WATCHDOG; 0 disables the watchdog
  int iterations_at_a_time = 128;  // WEFT_LAPS: rounds of a long schedule that are built at a time
                                   // (schedule/builder.h)
  bool summary = false;
  std::string summary_json_file;                // FILE of WEFT_SUMMARY=json:FILE; empty for none
  std::string trace_file;                       // WEFT_TRACE; empty for no trace
  std::array<std::string, kKinds> algorithm{};  // WEFT_ALGORITHM_<KIND>; empty lets Selector decide

  // Returns whether the user leaves calls of this kind to the MPI library.
  bool leaves(Kind kind) const { return algorithm[static_cast<std::size_t>(kind)] == kLibrarys; }

  // value_of(): returns the value of a variable, or nullptr if it is not set.
  static Result<Config> from(const std::function<const char*(const char* name)>& value_of);
  static Result<Config> from_environment();
  bool operator==(const Config&) const = default;

 private:
  Result<bool> settle_reproducible();
};

}  // namespace weft
