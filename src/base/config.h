// Config holds the user's settings. They are read from WEFT_* variables, which `weft run` sets from
// its options (table in base/options.h). The library and `weft run` both use this class, so that
// both accept and refuse the same values.
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

// These strings list the possible values of options, environment variables and info hints for error
// messages. Words in capital letters stand for a value that the user chooses.
inline constexpr const char* kEngineChoices = "native, assist, function, thread, tcc, agent, auto";
inline constexpr const char* kPlacementChoices = "bind, numa, odd-even, pack:K, list:C,C,...";
inline constexpr const char* kSplitChoices = "auto, 0, 1, 2, 3";
inline constexpr const char* kBackoffChoices = "yield, spin, sleep:US, quiet";
inline constexpr const char* kTransportChoices = "auto, mpi";
inline constexpr const char* kLearnChoices = "on, use, off";
inline constexpr const char* kXpmemChoices = "auto, off, /PATH";
inline constexpr const char* kOneCopyChoices = "auto, on, off";
inline constexpr const char* kTransfersChoices = "auto, off, 64KiB, 1MiB";
inline constexpr const char* kWindowsChoices = "active, passive";

enum class Engine : std::uint8_t { native, assist, function, thread, tcc, agent, automatic };
inline constexpr int kEngines = 7;
// Returns whether each rank has a progress thread with this engine. With engine `agent`, the
// progress thread takes over where no core agent can serve the rank.
constexpr bool has_progress_thread(Engine engine) {
  return engine == Engine::thread || engine == Engine::agent;
}

const char* engine_name(Engine engine);
Result<Engine> parse_engine(std::string_view text);

// Says on which cores the progress threads run. topo/placement.h computes the cores from this.
struct PlacementPolicy {
  enum class Kind : std::uint8_t { bind, numa, odd_even, pack, list } kind = Kind::bind;
  int threads_per_core = 1;  // K of the placement pack:K; 1 for all others
  // The values of the placement list:C,C,…: the thread of node rank r runs on core cores[r %
  // cores.size()].
  std::vector<int> cores;
  bool operator==(const PlacementPolicy&) const = default;
};
Result<PlacementPolicy> parse_placement(std::string_view text);
// Returns the placement as text that parse_placement() reads, such as "pack:2".
std::string placement_words(const PlacementPolicy& policy);

// Says what a progress thread does after a poll that found nothing. yield: it calls sched_yield().
// spin: it polls again at once. sleep: it sleeps for `sleep_us` microseconds. baton: it passes the
// core to another rank's progress thread on the same core. quiet: it sleeps so that it polls as
// rarely as possible.
struct BackOff {
  enum class Kind : std::uint8_t { yield, spin, sleep, quiet } kind = Kind::quiet;
  std::int64_t sleep_us = 0;
  bool operator==(const BackOff&) const = default;
};
// A back-off of earlier versions, for which quiet stands in.
inline constexpr std::string_view kBaton = "baton";
Result<BackOff> parse_backoff(std::string_view text);

// Parses the value of WEFT_SPLIT: returns the number of levels of a reduction or broadcast tree
// that the calling thread advances itself, or Config::kByModel.
Result<int> parse_split(std::string_view text);

// Parses a whole number that is at least `low`. Returns an error for any other text. what: the name
// of the setting for the error message.
Result<int> parse_number(std::string_view text, int low, const std::string& what);

// Parses a duration such as "10ms", "500us", "1s" or "0", and returns it in microseconds. what: the
// name of the setting for the error message.
Result<std::int64_t> parse_duration(std::string_view text, const std::string& what);

// Parses the value of WEFT_TRANSPORT: returns true if ranks of a node may use shared memory.
Result<bool> parse_transport(std::string_view text);

// Parses the value of WEFT_XPMEM: "auto", "off", or the path of the XPMEM library, by which ranks
// of a node attach each other's memory. Returns the value, or an error.
Result<std::string> parse_xpmem(std::string_view text);

// Says when the kernel copies data directly between two ranks of a node (shm/one_copy.h).
// automatic: where a measurement found it faster. always: wherever the kernel permits it. never:
// not at all.
enum class OneCopyUse : std::uint8_t { automatic, always, never };
Result<OneCopyUse> parse_one_copy(std::string_view text);

// Stands for "off" as the least size of transfers in bytes. No transfer is this large.
inline constexpr std::int64_t kNoTransfers = std::numeric_limits<std::int64_t>::max();
// Parses the value of WEFT_TRANSFERS: "auto", "off" or a size such as 65536, 64KiB or 1MiB. Returns
// the size in bytes from which the progress thread progresses the application's own messages;
// kNoTransfers for "off".
Result<std::int64_t> parse_transfers(std::string_view text);

// Parses the value of WEFT_WINDOWS. Returns true for "passive": the progress thread then also polls
// for passive-target accesses to this rank's windows, about which this rank is not notified.
Result<bool> parse_windows(std::string_view text);

// Parses a percentage such as "1", "0.5" or "2%". Returns it in percent, or an error if it exceeds
// 100. what: the name of the setting for the error message.
Result<double> parse_percent(std::string_view text, const std::string& what);

// Says how engine auto learns. on: it tries alternatives while the program runs. use: it only uses
// results of earlier runs. off: it follows the fixed rule of the selector. switching (for tests):
// it changes the alternative every few calls, whatever the times are.
enum class Learn : std::uint8_t { off, use, on, switching };
Result<Learn> parse_learn(std::string_view text);
const char* learn_word(Learn learn);

// Returns the default name of the file of measured plans; "" if the user has no cache directory.
std::string default_plan_cache();
// The user gives this word instead of an algorithm's name to leave such calls to the MPI library.
inline constexpr std::string_view kLibrarys = "native";
inline constexpr const char* kOrLibrarys =
    ", or native, which leaves these calls to the MPI library";
// The file of measured plans begins with these words in every version of its format.
inline constexpr std::string_view kPlansBegin = "# weft plans, ";

struct Config {
  Engine engine = Engine::automatic;
  PlacementPolicy placement;
  BackOff backoff;
  bool asks_for_baton = false;  // WEFT_BACKOFF is kBaton
  // WEFT_TRANSFERS: the progress thread progresses the application's own messages and other
  // transfers of at least this size while the application computes (runtime/request/transfers.h).
  static constexpr std::int64_t kLargeTransfer = 128 * 1024;
  std::int64_t least_transfer_bytes = kLargeTransfer;
  // WEFT_WINDOWS: true if the progress thread also polls for accesses to this rank's windows that
  // other ranks may lock (runtime/request/windows.h).
  bool passive_windows = false;
  // WEFT_SPLIT: the number of levels of a reduction or broadcast tree that application threads
  // advance inside MPI calls (coll/split_tree.h). kByModel: a cost model chooses the number.
  static constexpr int kByModel = -1;
  int split_levels = kByModel;
  // WEFT_BLOCKING: blocking collectives use Weft always (1), never (0), or by the rule of engine
  // auto (unset), which uses Weft's shared memory inside a node.
  enum class Blocking : std::uint8_t { by_rule, always, never } blocking = Blocking::by_rule;
  // WEFT_REPRODUCIBLE: reductions give bitwise identical results for every distribution of the
  // ranks over nodes.
  bool reproducible = false;
  Learn learn = Learn::on;  // WEFT_LEARN: whether engine auto tries alternatives
  // WEFT_LEARNING_BUDGET: the highest cost of engine auto's trials, in percent of the run time; 0
  // disables trials.
  double learning_budget = 1;
  // WEFT_TRANSPORT: true for "auto"; false for "mpi", with which ranks of a node exchange MPI
  // messages instead of using shared memory.
  bool node_memory = true;
  // WEFT_INIT_BUDGET: the time in microseconds for which the initialisation of a persistent
  // collective may measure algorithms; 0 disables measuring.
  std::int64_t init_budget_us = 10'000;
  // WEFT_PLAN_CACHE: the file of measured plans, by default in the user's cache directory; empty
  // for no file.
  std::string plan_cache_file;
  // WEFT_SHARED_HEAP: the size in bytes from which the application's allocations come from memory
  // that the ranks of a node share; 0 disables this. libweft-heap.so reads the variable itself.
  int shared_heap_bytes = 0;
  // WEFT_ONE_COPY: says when the kernel copies data directly between ranks of a node.
  OneCopyUse one_copy = OneCopyUse::automatic;
  // WEFT_XPMEM: "auto", "off", or the path of the XPMEM library (shm/xpmem.h).
  std::string xpmem = "auto";
  // WEFT_WATCHDOG: the time in seconds after which a stuck collective is reported; 0 disables the
  // watchdog.
  int watchdog_s = 0;
  // WEFT_LAPS: a schedule with many rounds is built piece by piece, with this number of rounds in
  // each piece (schedule/builder.h).
  int iterations_at_a_time = 128;
  bool summary = false;
  std::string summary_json_file;  // the FILE of WEFT_SUMMARY=json:FILE; empty for none
  std::string trace_file;         // WEFT_TRACE: the file; empty for no trace
  // WEFT_ALGORITHM_<KIND>: the name of the algorithm for each kind; empty if Selector chooses it.
  std::array<std::string, kKinds> algorithm{};

  // Returns whether the user leaves calls of this kind to the MPI library.
  bool leaves(Kind kind) const { return algorithm[static_cast<std::size_t>(kind)] == kLibrarys; }

  // Reads all settings. value_of() must return the value of an environment variable, or nullptr if
  // it is not set. Returns an error if a value is wrong.
  static Result<Config> from(const std::function<const char*(const char* name)>& value_of);
  static Result<Config> from_environment();
  bool operator==(const Config&) const = default;

 private:
  Result<bool> settle_reproducible();
};

}  // namespace weft
