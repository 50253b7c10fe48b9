// Makes unprintable characters visible. Bytes from 0x80 on are left unchanged, so that UTF-8 text
// is printed as it is.
#include "base/quoted.h"

namespace weft {
namespace {

constexpr std::size_t kMostBytes = 1000;

std::string escaped(unsigned char byte) {
  constexpr const char* kDigits = "0123456789abcdef";
  if (byte == '\n') return "\\n";
  if (byte == '\r') return "\\r";
  if (byte == '\t') return "\\t";
  return {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
}

}  // namespace

std::string printable(std::string_view text) {
  const bool too_long = text.size() > kMostBytes;
  std::string printed;
  for (const char c : text.substr(0, kMostBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte == 0x7f)
      printed += escaped(byte);
    else
      printed += c;
  }
  return too_long ? printed + "..." : printed;
}

std::string in_quotes(std::string_view text) {
  return "'" + printable(text) + "'";
}

}  // namespace weft
