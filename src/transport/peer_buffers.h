// PeerBuffers: where the other ranks' buffers lie in this process, for one operation; either known
// beforehand (a persistent request) or found out while a direct schedule runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "schedule/schedule.h"
#include "shm/node_windows.h"
#include "shm/shared_ranges.h"

namespace weft {

class PeerBuffers {
 public:
  // ranges: what this process sees of the others' memory; must outlive this.
  PeerBuffers(const SharedRanges& ranges, int ranks)
      : ranges_(&ranges), at_(static_cast<std::size_t>(ranks)) {}

  // Before each operation: what this rank shows. False from now on: known() of all ranks.
  void begin(const ShownBuffers& own) {
    own_ = own;
    searching_ = true;
  }
  // What all ranks have shown each other before, for good; false: some cannot be seen.
  bool know(std::span<const ShownBuffers> all) {
    searching_ = false;
    bool visible = true;
    for (std::size_t rank = 0; rank < all.size(); ++rank) visible &= note(rank, all[rank]);
    return visible;
  }

  // The steps.
  void show(int rank, const NodeTurn& turn) const {
    if (searching_) std::memcpy(turn.shown_by(rank), &own_, sizeof own_);
  }
  bool find(int rank, const NodeTurn& turn) {
    if (!searching_) return true;
    ShownBuffers shown;
    std::memcpy(&shown, turn.shown_by(rank), sizeof shown);
    return note(static_cast<std::size_t>(rank), shown);
  }

  // buffer: send or recv, of a rank that has been found.
  std::byte* at(int rank, Buffer buffer) const {
    return at_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(buffer)];
  }

 private:
  // The rank that shows a buffer knows that all others have the memory.
  bool note(std::size_t rank, const ShownBuffers& shown) {
    const auto input = address(shown.input), result = address(shown.result);
    if (!input || !result) return false;
    at_[rank] = {*input, *result};
    return true;
  }
  std::optional<std::byte*> address(const ShownBuffer& shown) const {
    return shown.memory == ShownBuffer::kNotUsed ? nullptr : ranges_->find(shown);
  }

  const SharedRanges* ranges_;
  std::vector<std::array<std::byte*, 2>> at_;  // by rank
  ShownBuffers own_;
  bool searching_ = true;
};

}  // namespace weft
