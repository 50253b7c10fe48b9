// Form: how kernels carry a collective out, and which forms a collective may have. All ranks get
// the same answers from facts on which they have agreed.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace weft::gpu {

// apart: whether publishing, waiting and taking are kernels of their own. Then only one small block
// waits, however many slices there are. Otherwise each slice has a block that waits for the same
// slice of the other ranks.
struct Form {
  int slices = 1;
  bool apart = false;

  // Returns how many blocks wait at one time.
  int waiting() const { return apart ? 1 : slices; }
  bool operator==(const Form&) const = default;
};

// Returns the form for a collective of which each rank publishes `bytes`; nothing if no form fits.
// takes_parts: whether a rank takes only a part of what the others publish, which may be any slice.
// room: how many more blocks may wait on each device at one time.
std::optional<Form> form_by_rule(std::size_t bytes, bool takes_parts, int room);
// Returns the forms worth measuring, the rule's first; empty if no form fits.
std::vector<Form> forms_to_try(std::size_t bytes, bool takes_parts, int room);

}  // namespace weft::gpu
