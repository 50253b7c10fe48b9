// Sets LD_PRELOAD (preload.h). Sanitizers' runtimes are preloaded, too: they refuse to run unless
// they come first, and the loader puts preloaded libraries before those that the program is linked
// to.
#include "launch/preload.h"

#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/started.h"
#include "launch/program.h"

namespace weft::launch {
namespace {

// Returns the user's own LD_PRELOAD, without libraries that an outer `weft run` has added.
std::string preload_of_user() {
  for (const char* const variable : {kPreloadBeforeVariable, "LD_PRELOAD"})
    if (const char* const value = std::getenv(variable)) return value;
  return "";
}

std::vector<std::string_view> entries_of(std::string_view preload) {
  std::vector<std::string_view> entries;
  while (!preload.empty()) {
    const auto end = preload.find_first_of(" :");
    const std::string_view entry = preload.substr(0, end);
    if (!entry.empty() && entry.find("/libweft-") == entry.npos) entries.push_back(entry);
    preload = end == preload.npos ? "" : preload.substr(end + 1);
  }
  return entries;
}

}  // namespace

void set_preload(const std::string& libraries, const std::string& sanitizer) {
  const std::string before = preload_of_user();
  const auto entries = entries_of(before);
  const bool has_runtime = !entries.empty() && is_sanitizer(entries.front());
  const bool puts_runtime = !sanitizer.empty() && !has_runtime;
  std::string value = puts_runtime ? sanitizer + ":" : "";
  auto next = entries.begin();
  for (; next != entries.end() && is_sanitizer(*next); ++next) value.append(*next).append(":");
  value += libraries;
  for (; next != entries.end(); ++next) value.append(":").append(*next);
  setenv("LD_PRELOAD", value.c_str(), 1);
  if (puts_runtime)
    setenv(kPreloadBeforeVariable, before.c_str(), 1);
  else
    unsetenv(kPreloadBeforeVariable);
}

}  // namespace weft::launch
