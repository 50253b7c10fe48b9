// Parses the options of the programs that sample. Every rank parses the same command line. An
// unknown word is rejected here, since otherwise something else would be measured.
#include <limits>

#include "options.h"
#include "sampling.h"

namespace bench {
namespace {

template <class T>
bool assign(T* target, const std::string& text, double low, double high) {
  const auto value = number(text, low, high);
  if (value) *target = static_cast<T>(*value);
  return value.has_value();
}

bool set_size(long* target, const std::string& text) {
  const auto bytes = size_in_bytes(text);
  *target = bytes.value_or(0);
  return bytes && *bytes >= 8 && *bytes / 8 <= std::numeric_limits<int>::max();
}

bool set_iterations(std::vector<long>* target, const std::string& text) {
  for (const auto& word : list(text)) {
    if (!assign(&target->emplace_back(), word, 1, 1e15)) return false;
  }
  return !target->empty();
}

bool set(SamplingOptions* options, const std::string& name, const std::string& value) {
  if (value.empty()) return false;
  if (name == "--collective") {
    options->collective = value;
    return find_collective(value).has_value();
  }
  if (name == "--bytes") return set_size(&options->bytes, value);
  if (name == "--engines") return !(options->engines = list(value)).empty();
  if (name == "--iterations") return set_iterations(&options->iterations, value);
  if (name == "--kernel") return !(options->work.kernel = value).empty();
  if (name == "--working-set") return set_size(&options->work.working_set_bytes, value);
  if (name == "--compute-library") return !(options->work.library = value).empty();
  if (name == "--seconds") return assign(&options->seconds, value, 0, 1e9);
  if (name == "--repetitions") return assign(&options->repetitions, value, 1, 1e6);
  if (name == "--tolerance") return assign(&options->tolerance, value, 0, 1);
  if (name == "--pause-us") return assign(&options->pause_us, value, 0, 1e7);
  if (name == "--seed") return assign(&options->seed, value, 0, 4e9);
  if (name == "--samples") return !(options->samples = value).empty();
  return false;
}

}  // namespace

bool parse(int argc, char** argv, SamplingOptions* options, std::string* problem) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (set(options, name, value)) continue;
    *problem = "cannot use '" + name + " " + value + "'";
    return false;
  }
  if (options->pause_us < 0) options->pause_us = options->bytes >= 4096 ? 15000 : 0;
  return true;
}

}  // namespace bench
