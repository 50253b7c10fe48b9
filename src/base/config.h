// Config: what the user asked for, read from WEFT_* (weft run sets them from its options;
// base/options.h has the table of them).
// Why one place: the library and `weft run` must accept and refuse the same words.
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

// The values of options, variables and hints; capitals stand for values.
inline constexpr const char* kEngineChoices = "native, assist, function, thread, tcc, agent, auto";
inline constexpr const char* kPlacementChoices = "bind, numa, odd-even, pack:K, list:C,C,...";
inline constexpr const char* kSplitChoices = "auto, 0, 1, 2, 3";
inline constexpr const char* kBackoffChoices = "yield, spin, sleep:US, baton, quiet";
inline constexpr const char* kTransportChoices = "auto, mpi";
inline constexpr const char* kLearnChoices = "on, use, off";
inline constexpr const char* kXpmemChoices = "auto, off, /PATH";
inline constexpr const char* kOneCopyChoices = "auto, on, off";
inline constexpr const char* kTransfersChoices = "auto, off, 64KiB, 1MiB";

enum class Engine : std::uint8_t { native, assist, function, thread, tcc, agent, automatic };
inline constexpr int kEngines = 7;
// Returns whether the engine carries out Weft's rounds by a progress thread of each rank, at least
// as a fallback.
constexpr bool has_progress_thread(Engine engine) {
  return engine == Engine::thread || engine == Engine::agent;
}

const char* engine_name(Engine engine);
Result<Engine> parse_engine(std::string_view text);

// Says where progress threads run; topo/placement.h makes the decision.
struct PlacementPolicy {
  enum class Kind : std::uint8_t { bind, numa, odd_even, pack, list } kind = Kind::bind;
  int threads_per_core = 1;  // pack:K
  std::vector<int> cores;    // list:C,C,…: thread of local rank r goes to entry r modulo length
  bool operator==(const PlacementPolicy&) const = default;
};
Result<PlacementPolicy> parse_placement(std::string_view text);
std::string placement_words(const PlacementPolicy& policy);  // as parse_placement() takes them

// Says what a progress thread does after a poll that found nothing.
struct BackOff {
  enum class Kind : std::uint8_t { yield, spin, sleep, baton, quiet } kind = Kind::quiet;
  std::int64_t sleep_us = 0;
  bool operator==(const BackOff&) const = default;
};
Result<BackOff> parse_backoff(std::string_view text);

// Returns the levels of a tree, or Config::kByModel.
Result<int> parse_split(std::string_view text);

// A whole number from `low` on; `what` names it in the refusal.
Result<int> parse_number(std::string_view text, int low, const std::string& what);

// "10ms", "500us", "1s", "0"; in microseconds.
Result<std::int64_t> parse_duration(std::string_view text, const std::string& what);

// Returns whether ranks of one node may use shared memory.
Result<bool> parse_transport(std::string_view text);

// Returns whether, or by which library, ranks of one node attach each other's memory.
Result<std::string> parse_xpmem(std::string_view text);

// Says when the kernel copies between ranks of one node (shm/one_copy.h): where it was measured to
// be faster (automatic), wherever it can (always), or never.
enum class OneCopyUse : std::uint8_t { automatic, always, never };
Result<OneCopyUse> parse_one_copy(std::string_view text);

// Parses "auto", "off" or a size such as 65536, 64KiB or 1MiB; returns bytes, kNoTransfers for
// "off".
inline constexpr std::int64_t kNoTransfers = std::numeric_limits<std::int64_t>::max();
Result<std::int64_t> parse_transfers(std::string_view text);

// Parses a share such as 1, 0.5 or 2%; returns per cent, up to 100.
Result<double> parse_percent(std::string_view text, const std::string& what);

// Says how engine auto learns. on: it tries alternatives while the program runs; use: it only uses
// the results of earlier runs; off: it goes by the rule; switching, for tests: it changes every few
// calls, whatever the times.
enum class Learn : std::uint8_t { off, use, on, switching };
Result<Learn> parse_learn(std::string_view text);
const char* learn_word(Learn learn);

// Returns the default file of plans; empty if the user has no directory for it.
std::string default_plan_cache();
// Stands in place of an algorithm's name: the calls are left to the MPI library.
inline constexpr std::string_view kLibrarys = "native";
inline constexpr const char* kOrLibrarys =
    ", or native, which leaves these calls to the MPI library";
// Every file of plans begins with these words, whatever its version.
inline constexpr std::string_view kPlansBegin = "# weft plans, ";

struct Config {
  Engine engine = Engine::automatic;
  PlacementPolicy placement;
  BackOff backoff;
  // WEFT_TRANSFERS: from this size on the progress thread looks after the application's own
  // messages and the like while it computes (runtime/request/transfers.h).
  static constexpr std::int64_t kLargeTransfer = 128 * 1024;
  std::int64_t least_transfer_bytes = kLargeTransfer;
  // WEFT_SPLIT: the number of a tree's levels that are the caller's part (coll/split_tree.h);
  // kByModel leaves it to the model of the split tree.
  static constexpr int kByModel = -1;
  int split_levels = kByModel;
  // WEFT_BLOCKING: blocking collectives use Weft's schedules always (1), never (0), or by engine
  // auto's rule: inside a node, in shared memory.
  enum class Blocking : std::uint8_t { by_rule, always, never } blocking = Blocking::by_rule;
  // WEFT_REPRODUCIBLE: reductions give bitwise identical results, however the ranks are distributed
  // over nodes.
  bool reproducible = false;
  Learn learn = Learn::on;  // WEFT_LEARN
  // WEFT_LEARNING_BUDGET: the limit for the cost of trials, in per cent of the time; 0 disables
  // them.
  double learning_budget = 1;
  bool node_memory = true;  // WEFT_TRANSPORT: auto; mpi: messages only, also inside a node
  // WEFT_INIT_BUDGET: how long a persistent initialisation may measure; 0 disables it.
  std::int64_t init_budget_us = 10'000;
  std::string plan_cache_file;  // WEFT_PLAN_CACHE, else the user's cache directory; empty: none
  // WEFT_SHARED_HEAP: allocations of the application from this size on come from memory that the
  // ranks of a node share (libweft-heap.so reads it); 0 disables that.
  int shared_heap_bytes = 0;
  OneCopyUse one_copy = OneCopyUse::automatic;  // WEFT_ONE_COPY
  // WEFT_XPMEM: auto, off, or the path of a library; see shm/xpmem.h.
  std::string xpmem = "auto";
  int watchdog_s = 0;              // WEFT_WATCHDOG; 0: none
  int iterations_at_a_time = 128;  // WEFT_LAPS; schedule/builder.h
  bool summary = false;
  std::string summary_json_file;                // WEFT_SUMMARY=json:FILE
  std::string trace_file;                       // empty: no trace
  std::array<std::string, kKinds> algorithm{};  // WEFT_ALGORITHM_<KIND>; empty: Selector decides

  // Returns whether calls of this kind are all the library's, since the user says so.
  bool leaves(Kind kind) const { return algorithm[static_cast<std::size_t>(kind)] == kLibrarys; }

  // value_of returns the value of a variable, or nullptr if it is not set.
  static Result<Config> from(const std::function<const char*(const char* name)>& value_of);
  static Result<Config> from_environment();
  bool operator==(const Config&) const = default;

 private:
  Result<bool> settle_reproducible();
};

}  // namespace weft
