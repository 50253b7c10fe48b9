// PeerBuffers: where the other ranks' buffers lie in this process, for one operation; either known
// beforehand (a persistent request) or found out while a direct schedule runs.
// Why by offsets: a rank sees another's shared memory at another address than that rank itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "schedule/schedule.h"

namespace weft {

class PeerBuffers {
 public:
  // heaps: where what each rank shares begins here; must outlive this.
  explicit PeerBuffers(std::span<std::byte* const> heaps) : heaps_(heaps), at_(heaps.size()) {}

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

  // The steps; `node`: the node's memory, lines first.
  void show(int rank, std::byte* node) const {
    if (searching_) std::memcpy(payload(rank, node), &own_, sizeof own_);
  }
  bool find(int rank, std::byte* node) {
    if (!searching_) return true;
    ShownBuffers shown;
    std::memcpy(&shown, payload(rank, node), sizeof shown);
    return note(static_cast<std::size_t>(rank), shown);
  }

  // buffer: send or recv, of a rank that has been found.
  std::byte* at(int rank, Buffer buffer) const {
    return at_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(buffer)];
  }

 private:
  static std::byte* payload(int rank, std::byte* node) {
    return node + rank * kLineBytes + kLineHeaderBytes;
  }
  bool note(std::size_t rank, const ShownBuffers& shown) {
    if (shown.input == ShownBuffers::kNotShared || shown.result == ShownBuffers::kNotShared)
      return false;
    at_[rank] = {heaps_[rank] + shown.input, heaps_[rank] + shown.result};
    return true;
  }

  std::span<std::byte* const> heaps_;
  std::vector<std::array<std::byte*, 2>> at_;  // by rank
  ShownBuffers own_;
  bool searching_ = true;
};

}  // namespace weft
