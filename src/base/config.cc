// Parses the user's settings into a Config. Every error message lists the possible values.
#include "base/config.h"

#include <charconv>
#include <cstdlib>
#include <utility>

#include "base/options.h"
#include "base/quoted.h"

namespace weft {
namespace {

constexpr std::array<const char*, kEngines> kEngineNames = {
    "native", "assist", "function", "thread", "tcc", "agent", "auto"};

Error unknown(const std::string& what, std::string_view text, const char* choices) {
  return Error{"unknown " + what + " " + in_quotes(text) + "; choose one of " + choices};
}

constexpr const char* kMostOfAUnit = " is a number of at most 2147483647, and its unit, not ";

bool is_beyond(std::errc failed, std::int64_t number) {
  return failed == std::errc::result_out_of_range ? number >= 0 : number > INT32_MAX;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

Result<PlacementPolicy> parse_core_list(std::string_view text) {
  PlacementPolicy policy{PlacementPolicy::Kind::list, 1, {}};
  while (true) {
    const auto comma = text.find(',');
    auto core = parse_number(text.substr(0, comma), 0, "placement list:C,C,…");
    if (!core) return core.error();
    policy.cores.push_back(*core);
    if (comma == std::string_view::npos) return policy;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<int> parse_number(std::string_view text, int low, const std::string& what) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = end == text.data() + text.size() && !text.empty();
  if (error == std::errc() && is_number && value >= low) return value;
  const bool too_large = error == std::errc::result_out_of_range && is_number && text[0] != '-';
  return Error{what + " needs a whole number of at " +
               (too_large ? "most " + std::to_string(INT32_MAX) : "least " + std::to_string(low)) +
               ", not " + in_quotes(text)};
}

const char* engine_name(Engine engine) {
  return kEngineNames[static_cast<std::size_t>(engine)];
}

Result<Engine> parse_engine(std::string_view text) {
  for (int i = 0; i < kEngines; ++i)
    if (text == kEngineNames[i]) return static_cast<Engine>(i);
  return unknown("engine", text, kEngineChoices);
}

Result<PlacementPolicy> parse_placement(std::string_view text) {
  if (text == "bind") return PlacementPolicy{};
  if (text == "numa") return PlacementPolicy{PlacementPolicy::Kind::numa, 1, {}};
  if (text == "odd-even") return PlacementPolicy{PlacementPolicy::Kind::odd_even, 1, {}};
  std::string_view rest = text;
  if (take_prefix(rest, "pack:")) {
    auto threads = parse_number(rest, 1, "placement pack:K");
    if (!threads) return threads.error();
    return PlacementPolicy{PlacementPolicy::Kind::pack, *threads, {}};
  }
  if (take_prefix(rest, "list:")) return parse_core_list(rest);
  return unknown("placement", text, kPlacementChoices);
}

std::string placement_words(const PlacementPolicy& policy) {
  switch (policy.kind) {
    case PlacementPolicy::Kind::bind:
      return "bind";
    case PlacementPolicy::Kind::numa:
      return "numa";
    case PlacementPolicy::Kind::odd_even:
      return "odd-even";
    case PlacementPolicy::Kind::pack:
      return "pack:" + std::to_string(policy.threads_per_core);
    case PlacementPolicy::Kind::list:
      break;
  }
  std::string words;
  for (const int core : policy.cores)
    words += (words.empty() ? "list:" : ",") + std::to_string(core);
  return words;
}

Result<BackOff> parse_backoff(std::string_view text) {
  if (text == "yield") return BackOff{BackOff::Kind::yield, 0};
  if (text == "spin") return BackOff{BackOff::Kind::spin, 0};
  if (text == "quiet" || text == kBaton) return BackOff{BackOff::Kind::quiet, 0};
  std::string_view rest = text;
  if (take_prefix(rest, "sleep:")) {
    auto us = parse_number(rest, 1, "back-off sleep:US (microseconds)");
    if (!us) return us.error();
    return BackOff{BackOff::Kind::sleep, *us};
  }
  return unknown("back-off", text, kBackoffChoices);
}

Result<int> parse_split(std::string_view text) {
  if (text == "auto") return Config::kByModel;
  return parse_number(text, 0, "split S (levels of a tree; auto: by the model)");
}

namespace {

constexpr std::pair<const char*, Learn> kLearnWords[] = {
    {"off", Learn::off}, {"use", Learn::use}, {"on", Learn::on}, {"switch", Learn::switching}};

}  // namespace

Result<Learn> parse_learn(std::string_view text) {
  for (const auto& [word, learn] : kLearnWords)
    if (text == word) return learn;
  return unknown("learn", text, kLearnChoices);
}

const char* learn_word(Learn learn) {
  for (const auto& [word, named] : kLearnWords)
    if (named == learn) return word;
  return "";
}

Result<double> parse_percent(std::string_view text, const std::string& what) {
  double percent = -1;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const bool in_range = percent >= 0 && percent <= 100;
  if (failed == std::errc() && in_range && (unit.empty() || unit == "%")) return percent;
  return Error{what + " is a share in per cent such as 1, 0.5 or 0, and at most 100, not " +
               in_quotes(text)};
}

Result<bool> parse_transport(std::string_view text) {
  if (text == "auto" || text == "mpi") return text == "auto";
  return unknown("transport", text, kTransportChoices);
}

Result<std::string> parse_xpmem(std::string_view text) {
  if (text == "auto" || text == "off" || text.find('/') != std::string_view::npos)
    return std::string(text);
  return Error{"xpmem is auto, off or the path of a library, not " + in_quotes(text)};
}

Result<OneCopyUse> parse_one_copy(std::string_view text) {
  if (text == "auto") return OneCopyUse::automatic;
  if (text == "on") return OneCopyUse::always;
  if (text == "off") return OneCopyUse::never;
  return unknown("one-copy", text, kOneCopyChoices);
}

// Checks the settings together if reproducible reductions are requested, and returns an error if
// they conflict. The order of operands is known only in Weft's own schedules, which must therefore
// carry out all reductions.
Result<bool> Config::settle_reproducible() {
  if (!reproducible) return true;
  const bool by_rounds = engine == Engine::function || has_progress_thread(engine);
  if (!by_rounds && engine != Engine::automatic)
    return Error{
        std::string("reproducible reductions need engine function, thread, agent or auto, not ") +
        engine_name(engine)};
  if (blocking == Blocking::never)
    return Error{"reproducible reductions need the blocking ones too; leave WEFT_BLOCKING=0 out"};
  for (int i = 0; i < kKinds; ++i) {
    const auto kind = static_cast<Kind>(i);
    if (reduces(kind) && !algorithm[static_cast<std::size_t>(i)].empty())
      return Error{
          std::string("reproducible reductions have algorithms of their own; leave the one for ") +
          kind_name(kind) + " out"};
  }
  blocking = Blocking::always;
  return true;
}

Result<std::int64_t> parse_duration(std::string_view text, const std::string& what) {
  constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"us", 1}, {"ms", 1'000}, {"s", 1'000'000}};
  const Error error{what + " is a time such as 10ms, 500us, 1s or 0, not " + in_quotes(text)};
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (is_beyond(failed, number)) return Error{what + kMostOfAUnit + in_quotes(text)};
  if (failed != std::errc() || number < 0) return error;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit.empty() && number == 0) return number;
  for (const auto& [name, us] : kUnits)
    if (unit == name) return number * us;
  return error;
}

Result<std::int64_t> parse_transfers(std::string_view text) {
  if (text == "auto") return Config::kLargeTransfer;
  if (text == "off") return kNoTransfers;
  constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"", 1}, {"KiB", 1024}, {"MiB", 1024 * 1024}};
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (is_beyond(failed, number))
    return Error{std::string("transfers") + kMostOfAUnit + in_quotes(text)};
  for (const auto& [name, bytes] : kUnits)
    if (failed == std::errc() && number > 0 && unit == name) return number * bytes;
  return Error{"transfers is auto, off or a size such as 65536, 64KiB or 1MiB, not " +
               in_quotes(text)};
}

Result<bool> parse_windows(std::string_view text) {
  if (text == "active" || text == "passive") return text == "passive";
  return unknown("windows", text, kWindowsChoices);
}

// Returns the default file of measured plans; "" if the user has neither of the two directories
// $XDG_CACHE_HOME and $HOME/.cache. tools/generate_reference.py copies the next line to a page.
// Variable XDG_CACHE_HOME: the user's cache directory, whose file weft/plans keeps measured plans.
std::string default_plan_cache() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return std::string(cache) + "/weft/plans";
  const char* home = std::getenv("HOME");
  return home && *home == '/' ? std::string(home) + "/.cache/weft/plans" : "";
}

// Reads all variables. tools/generate_reference.py copies the next line to a page.
// Variable WEFT_LAPS: how many rounds are built at a time if a collective has one per rank (128).
Result<Config> Config::from(const std::function<const char*(const char* name)>& value_of) {
  Config config;
  config.plan_cache_file = default_plan_cache();
  for (const Option& option : option_table()) {
    const char* const value = option.read ? value_of(option.variable) : nullptr;
    if (!value) continue;
    if (auto read = option.read(value, config); !read) return read.error();
  }
  if (const char* text = value_of("WEFT_LAPS")) {
    auto iterations = parse_number(text, 1, "WEFT_LAPS");
    if (!iterations) return iterations.error();
    config.iterations_at_a_time = *iterations;
  }
  for (int i = 0; i < kKinds; ++i) {
    const std::string name = algorithm_variable(static_cast<Kind>(i));
    if (const char* text = value_of(name.c_str())) config.algorithm[i] = text;
  }
  if (auto done = config.settle_reproducible(); !done) return done.error();
  return config;
}

Result<Config> Config::from_environment() {
  return from([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace weft
