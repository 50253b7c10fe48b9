// Facts: what a rank has been told, and what of it decides what travels; ranks work together only
// where that is the same. Why words and no numbers: other versions of Weft can read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// None of the words holds a tabulator or the end of a line.
struct Fact {
  std::string name;   // of the option or hint
  std::string value;  // as the user knows it
  std::string wire;   // ranks go together where this is the same

  bool operator==(const Fact&) const = default;
};
using Facts = std::vector<Fact>;

// The same for the same names and wires. Never negative.
std::int64_t fingerprint(const Facts& facts);

// As one text to send, and back; what cannot be read is left out.
std::string text_of(const Facts& facts);
Facts facts_of(std::string_view text);

// What differs between ranks whose facts these are, by rank: "--engine is thread on rank 0 and tcc
// on ranks 1 to 3; …". Empty: nothing.
std::string differences(const std::vector<Facts>& of_ranks);

}  // namespace weft
