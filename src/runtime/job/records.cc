// Formats records as text for people, and as JSON for programs.
#include "runtime/job/records.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

#include "base/amounts.h"

namespace weft {

std::vector<std::int64_t> divided_wait(std::int64_t began_ns,
                                       const std::vector<std::int64_t>& ends_ns) {
  std::vector<std::size_t> order(ends_ns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return ends_ns[a] < ends_ns[b]; });
  std::vector<std::int64_t> shares(ends_ns.size());
  std::int64_t share = 0, until_ns = began_ns;
  auto left = static_cast<std::int64_t>(order.size());
  for (const std::size_t next : order) {
    share += std::max<std::int64_t>(ends_ns[next] - until_ns, 0) / left--;
    until_ns = std::max(until_ns, ends_ns[next]);
    shares[next] = share;
  }
  return shares;
}

std::string words_of(const CallClassKey& key) {
  std::string words = key.blocking ? "blocking " : "";
  words += kind_name(key.kind);
  if (key.kernel) words += ", predefined operator";
  if (key.size_class <= 0) return words;
  constexpr std::array<const char*, 4> kUnits = {" bytes", " KiB", " MiB", " GiB"};
  const int unit = std::min(key.size_class / 10, 3);
  return words + ", below " + std::to_string(std::uint64_t{1} << (key.size_class - 10 * unit)) +
         kUnits[static_cast<std::size_t>(unit)];
}

std::string turn_words(std::size_t position, std::size_t cycle) {
  if (cycle == 1) return "";
  return ", call " + std::to_string(position + 1) + " of " + std::to_string(cycle) + " in turn";
}

namespace {

// Returns as words the probability that the result is mere chance, for instance ", by chance 25 %".
// Returns "" if it is no higher than for three wins in three rounds between equally fast variants.
// python/weft/choices/learned.py must compute the same.
std::string doubt_words(const Learner::Found& found) {
  constexpr double kMostByChance = 0.125;
  const double chance = chance_of(found.won, found.pairs);
  if (chance <= kMostByChance) return "";
  char text[32];
  std::snprintf(text, sizeof text, ", by chance %.0f %%", 100 * chance);
  return text;
}

// Returns in how many rounds the result was found, for instance " (in 5 of 5 rounds)".
std::string rounds_words(const Learner::Found& found, double times) {
  char text[96];
  if (found.was_left)
    std::snprintf(text, sizeof text,
                  ", which took %.1f times as long and was met in %d round%s only", times,
                  found.pairs, found.pairs == 1 ? "" : "s");
  else
    std::snprintf(text, sizeof text, " (in %d of %d rounds%s)", found.won, found.pairs,
                  doubt_words(found).c_str());
  return text;
}

// Returns how much time the learnt engine and algorithm save, for instance "23 % less time than
// native (in 5 of 5 rounds)". Returns "" if nothing was compared.
std::string gain_words(const CallClassRecord& record) {
  const Learner::Found& found = record.found;
  if (found.pairs == 0) return "";
  const std::int64_t own = found.median_ns[static_cast<std::size_t>(found.variant)];
  const std::int64_t challenger = found.median_ns[static_cast<std::size_t>(found.challenger)];
  const char* const other = record.variants[static_cast<std::size_t>(found.challenger)].c_str();
  const double gain = 100.0 * (1.0 - static_cast<double>(own) / static_cast<double>(challenger));
  char text[160];
  if (gain < 1)
    std::snprintf(text, sizeof text, ", as fast as %s (%d rounds)", other, found.pairs);
  else
    std::snprintf(
        text, sizeof text, ", %.0f %% less time than %s%s", gain, other,
        rounds_words(found, static_cast<double>(challenger) / static_cast<double>(own)).c_str());
  return text;
}

std::string us_words(std::int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(ns) / 1e3);
  return text;
}

std::string cost_words(std::int64_t ns) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f ms", static_cast<double>(ns) / 1e6);
  return text;
}

// Returns the line about the cost and the gain of trials; "" if there were none. A gain below
// kNoise may be chance, since equal runs differ by as much.
std::string trials_line(const LearntReport& report, double seconds) {
  constexpr double kNoise = 0.01;
  const double cost_s = static_cast<double>(report.trials_cost_ns) / 1e9;
  const double won_s = static_cast<double>(report.won_ns) / 1e9;
  const auto is_new = [](const CallClassRecord& record) { return record.found.calls_on_trial > 0; };
  if (std::none_of(report.call_classes.begin(), report.call_classes.end(), is_new)) return "";
  char share[32];
  std::snprintf(share, sizeof share, " (%.2f %% of the time)", 100 * cost_s / seconds);
  const std::string later = report.is_kept
                                ? ", once: later runs begin with the result"
                                : "; no file keeps the result (in the lab none does): --plan-cache "
                                  "FILE does if it can be written";
  const bool is_clear = won_s >= kNoise * seconds;
  return "    trying cost " + (cost_s > 0 ? time_words(cost_s) + share : "no time") + later +
         (is_clear ? "; it won " + time_words(won_s) + " against the rule" : "") + "\n";
}

}  // namespace

std::string text_of(const LearntReport& report, double seconds) {
  std::string text;
  for (const CallClassRecord& record : report.call_classes) {
    const Learner::Found& found = record.found;
    if (!found.settled) continue;
    text += "    " + words_of(record.call_class_key) + turn_words(record.position, record.cycle) +
            ", " + std::to_string(record.ranks) +
            " ranks: " + record.variants[static_cast<std::size_t>(found.variant)] +
            gain_words(record);
    if (record.position == 0)
      text += "; " + std::to_string(found.calls_on_trial) + " of " + std::to_string(found.calls) +
              " calls on trial, which cost " + cost_words(found.trials_cost_ns);
    text += "\n";
  }
  if (text.empty()) return text;
  return "  learnt, by the time from one call to the next on the slowest rank "
         "(of a blocking call: its own):\n" +
         text + trials_line(report, seconds);
}

std::string json_of(const LearntReport& report) {
  std::string text;
  for (const CallClassRecord& record : report.call_classes) {
    const Learner::Found& found = record.found;
    text += std::string(text.empty() ? "" : ",") + "\n{\"call\":\"" + call_name(record.id) +
            "\",\"site\":\"" + words_of(record.call_class_key) +
            turn_words(record.position, record.cycle) +
            "\",\"ranks\":" + std::to_string(record.ranks) + ",\"way\":\"" +
            record.variants[static_cast<std::size_t>(found.variant)] +
            "\",\"settled\":" + (found.settled ? "true" : "false") +
            ",\"calls\":" + std::to_string(found.calls) +
            ",\"calls_on_trial\":" + std::to_string(found.calls_on_trial) +
            ",\"trials_cost_us\":" + us_words(found.trials_cost_ns) +
            ",\"won_us\":" + us_words(found.won_ns) + ",\"rounds\":" + std::to_string(found.pairs) +
            ",\"rounds_won\":" + std::to_string(found.won) + ",\"ways\":[";
    for (std::size_t variant = 0; variant < record.variants.size(); ++variant)
      text += std::string(variant ? "," : "") + "{\"way\":\"" + record.variants[variant] +
              "\",\"period_us\":" + us_words(found.median_ns[variant]) + "}";
    text += "]}";
  }
  return text;
}

}  // namespace weft
