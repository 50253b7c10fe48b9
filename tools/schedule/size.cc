// Parses units of 1000 (KB) and of 1024 (KiB), each under its own name only.
#include "size.h"

#include <charconv>
#include <limits>
#include <string_view>

namespace weft {
namespace {

struct SizeUnit {
  std::string_view name;
  std::int64_t bytes;
};

constexpr SizeUnit kUnits[] = {
    {"", 1},         {"B", 1},         {"kB", 1000},       {"KiB", 1024},
    {"MB", 1000000}, {"MiB", 1 << 20}, {"GB", 1000000000}, {"GiB", 1 << 30}};

}  // namespace

Result<std::int64_t> parse_size_bytes(const std::string& text) {
  const Error wrong{"'" + text +
                    "' is no size: write a whole number and B, kB, KiB, MB, MiB, GB or GiB, "
                    "for example 64KiB"};
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc{} || number < 0) return wrong;
  for (const SizeUnit& unit : kUnits) {
    if (std::string_view(rest, static_cast<std::size_t>(end - rest)) != unit.name) continue;
    if (number > std::numeric_limits<std::int64_t>::max() / 1024 / unit.bytes) return wrong;
    return number * unit.bytes;
  }
  return wrong;
}

}  // namespace weft
