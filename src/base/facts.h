// Facts are options of a rank that determine its messages and its use of shared memory. Ranks can
// work together only if their facts agree. Facts are sent as text, so that other versions of Weft
// can read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// Describes one option on which all ranks must agree. No string in it may contain a tab or newline.
struct Fact {
  std::string name;   // the name of the option or info key
  std::string value;  // the value as the user writes it
  std::string wire;   // the value to compare, which must be equal on all ranks

  bool operator==(const Fact&) const = default;
};
using Facts = std::vector<Fact>;

// Returns a non-negative hash over the names and the `wire` values of all facts.
std::int64_t fingerprint(const Facts& facts);

// text_of() converts facts to text for sending; facts_of() converts the text back, and skips parts
// that it cannot read.
std::string text_of(const Facts& facts);
Facts facts_of(std::string_view text);

// Describes how the facts differ between ranks, for instance "--engine is thread on rank 0 and tcc
// on ranks 1 to 3". Returns "" if they agree. of_ranks: the facts (options on which ranks must
// agree) of each rank.
std::string differences(const std::vector<Facts>& of_ranks);

}  // namespace weft
