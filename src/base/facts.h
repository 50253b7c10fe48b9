// Facts: options of a rank that decide what travels; ranks work together only if these agree. They
// are text, so that other versions of Weft can read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// A fact. None of its strings may contain a tabulator or the end of a line.
struct Fact {
  std::string name;   // of the option or hint
  std::string value;  // as the user knows it
  std::string wire;   // ranks go together where this is the same

  bool operator==(const Fact&) const = default;
};
using Facts = std::vector<Fact>;

// Returns a hash of names and wires, never negative.
std::int64_t fingerprint(const Facts& facts);

// Convert facts to a text to be sent, and back; text that cannot be read is left out.
std::string text_of(const Facts& facts);
Facts facts_of(std::string_view text);

// Describes the differences between ranks, given their facts by rank: "--engine is thread on rank 0
// and tcc on ranks 1 to 3; …". Empty if there are none.
std::string differences(const std::vector<Facts>& of_ranks);

}  // namespace weft
