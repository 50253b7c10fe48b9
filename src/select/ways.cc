// Which choices are worth trying.
#include "select/ways.h"

#include <algorithm>

#include "select/learner.h"

namespace weft {
namespace {

bool is_same(const Choice& one, const Choice& other) {
  return one.engine == other.engine && one.algorithm == other.algorithm;
}

void add(std::vector<Choice>& ways, const Choice& way) {
  const auto same = [&](const Choice& other) { return is_same(way, other); };
  if (ways.size() < Learner::kMostWays && std::none_of(ways.begin(), ways.end(), same))
    ways.push_back(way);
}

// Of two ways to send long data the better one depends on the network; short data go by the fewest
// messages. What takes as many rounds as there are ranks is left out where these are many.
constexpr std::int64_t kWorthOthers_bytes = 32 * 1024;
constexpr int kManyRanks = 32;
constexpr int kMostOthers = 2;

bool is_worth_trying(const Algorithm& algorithm, const Shape& shape) {
  const std::string_view name = algorithm.name;
  const bool long_chain = name == "linear" || name == "chain";
  const bool in_order = name.find("in-order") != std::string_view::npos;
  return algorithm.kind == shape.kind && !is_direct(algorithm) && !in_order &&
         algorithm.needs != Needs::nodes_leaders && !(long_chain && shape.size > kManyRanks) &&
         applies(algorithm, shape);
}

// For long data: others than `known`.
void add_others(std::vector<Choice>& ways, Engine engine, const Shape& shape,
                const Algorithm* known) {
  if (agreed_bytes(shape).value_or(0) < kWorthOthers_bytes) return;
  int others = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (others == kMostOthers) break;
    if (&algorithm == known || !is_worth_trying(algorithm, shape)) continue;
    add(ways, {engine, &algorithm});
    ++others;
  }
}

}  // namespace

std::vector<Choice> ways_for(const Config& config, Library library, const Shape& shape,
                             const Choice& rule) {
  std::vector<Choice> ways = {rule};
  add(ways, {Engine::native, nullptr});
  const Choice by_thread = choose(config, library, Engine::thread, shape);
  add(ways, by_thread);
  add(ways, choose(config, library, Engine::function, shape));
  if (!is_neighborhood(shape.kind)) add(ways, {Engine::assist, nullptr});
  add_others(ways, Engine::thread, shape, by_thread.algorithm);
  return ways;
}

std::vector<Choice> ways_for_blocking(const Config& config, Library library, const Shape& shape) {
  const Choice by_callers = choose(config, library, Engine::function, shape);
  std::vector<Choice> ways = {{Engine::native, nullptr}, by_callers};
  add_others(ways, Engine::function, shape, by_callers.algorithm);
  return ways;
}

int native_among(const std::vector<Choice>& ways) {
  const auto found = std::find_if(ways.begin(), ways.end(),
                                  [](const Choice& way) { return way.engine == Engine::native; });
  return found == ways.end() ? -1 : static_cast<int>(found - ways.begin());
}

std::string way_words(const Choice& way) {
  return engine_name(way.engine) + (way.algorithm ? std::string(" ") + way.algorithm->name : "");
}

std::optional<int> find_way(const std::vector<Choice>& ways, std::string_view words) {
  for (std::size_t i = 0; i < ways.size(); ++i)
    if (way_words(ways[i]) == words) return static_cast<int>(i);
  return std::nullopt;
}

}  // namespace weft
