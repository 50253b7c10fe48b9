// Sets LD_PRELOAD (preload.h). A sanitizer's runtime refuses to run unless it is the first library
// of the program. The dynamic linker puts preloaded libraries before those to which the program is
// linked, so the runtime must be preloaded, too.
#include "launch/preload.h"

#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/started.h"
#include "launch/program.h"

namespace weft::launch {
namespace {

// Returns LD_PRELOAD as the user has set it. An outer `weft run` that added a sanitizer's runtime
// has saved that value in a variable of its own.
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
