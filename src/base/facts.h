// Facts: options of a rank that determine its messages and shared memory. Ranks can work together
// only if these agree. They are text, so that other versions of Weft can read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// A fact. None of its strings may contain a tab or newline.
struct Fact {
  std::string name;   // name of the option or hint
  std::string value;  // value as the user writes it
  std::string wire;   // value to compare: ranks can work together if it is equal on all of them

  bool operator==(const Fact&) const = default;
};
using Facts = std::vector<Fact>;

// Returns a non-negative hash of the names and wires.
std::int64_t fingerprint(const Facts& facts);

// Convert facts to text for sending, and text to facts. Unreadable parts of the text are omitted.
std::string text_of(const Facts& facts);
Facts facts_of(std::string_view text);

// Describes the differences between ranks: "--engine is thread on rank 0 and tcc on ranks 1 to 3;
// …". Empty if there are none. of_ranks: facts by rank.
std::string differences(const std::vector<Facts>& of_ranks);

}  // namespace weft
