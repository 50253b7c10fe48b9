// Parses the command line, with sizes such as 2MiB and lists such as native,thread. Unknown words
// are rejected before MPI starts, so that nothing is measured by mistake.
#include "options.h"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <sstream>

namespace bench {

std::optional<double> number(const std::string& text, double low, double high) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !(value >= low && value <= high)) return std::nullopt;
  return value;
}

std::optional<long> size_in_bytes(const std::string& text) {
  const struct {
    const char* unit;
    long bytes;
  } units[] = {{"KiB", 1L << 10}, {"MiB", 1L << 20}, {"kB", 1000}, {"MB", 1000000}, {"B", 1}};
  for (const auto& [unit, bytes] : units) {
    const std::size_t length = std::strlen(unit);
    if (text.size() <= length || text.substr(text.size() - length) != unit) continue;
    const auto value = number(text.substr(0, text.size() - length), 0, 1e9);
    if (!value) return std::nullopt;
    return static_cast<long>(*value * static_cast<double>(bytes));
  }
  const auto value = number(text, 0, 1e12);
  return value ? std::optional<long>(static_cast<long>(*value)) : std::nullopt;
}

std::vector<std::string> list(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

namespace {

template <class T>
bool assign(T* target, const std::string& text, double low, double high) {
  const auto value = number(text, low, high);
  if (value) *target = static_cast<T>(*value);
  return value.has_value();
}

bool set(Options* options, const std::string& name, const std::string& value) {
  if (name == "--collective") {
    const auto found = find_collective(value);
    if (!found) return false;
    options->collective_name = value;
    options->collective = *found;
    return true;
  }
  if (name == "--bytes") {
    const auto bytes = size_in_bytes(value);
    options->bytes = bytes.value_or(0);
    return bytes && *bytes >= 8 && *bytes / 8 <= std::numeric_limits<int>::max();
  }
  if (name == "--engines") {
    options->engines = list(value);
    return !options->engines.empty();
  }
  if (name == "--json") {
    options->json = value;
    return !value.empty();
  }
  if (name == "--repetitions") return assign(&options->repetitions, value, 1, 1e6);
  if (name == "--ratio") return assign(&options->ratio, value, 1e-3, 1e3);
  if (name == "--iterations") return assign(&options->iterations, value, 1, 1e12);
  if (name == "--batch") return assign(&options->batch, value, 1, 1e6);
  if (name == "--pause-us") return assign(&options->pause_us, value, 0, 1e7);
  if (name == "--seed") return assign(&options->seed, value, 0, 4e9);
  return false;
}

}  // namespace

std::optional<Options> parse(int argc, char** argv, std::string* problem) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--latency") {
      options.latency = true;
      continue;
    }
    const std::string value = i + 1 < argc ? argv[++i] : "";
    if (!set(&options, name, value)) {
      *problem = "cannot use '" + name + " " + value + "'";
      return std::nullopt;
    }
  }
  if (options.pause_us < 0)
    options.pause_us = options.bytes >= 4096 && !options.latency ? 15000 : 0;
  return options;
}

const char* usage() {
  return "usage: overlap [--collective allreduce|alltoall|bcast|reduce|allgather|scan|barrier]\n"
         "               [--bytes 2MiB] [--engines native,thread,...] [--repetitions 9]\n"
         "               [--ratio 1.0 | --iterations N] [--latency [--batch 200]] [--pause-us N] "
         "[--seed N]\n"
         "               [--json FILE]\n";
}

}  // namespace bench
