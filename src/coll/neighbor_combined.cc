// Neighborhood alltoall in which all blocks between two ranks form one packed message: both ends
// know the number of blocks, and the total bytes agree. A single block is not packed. It suits
// grids with few ranks in a dimension, and graphs with repeated edges.
// Träff, Carpen-Amarie, Hunold, Rougier, arXiv:1606.07676, 2016
#include <vector>

#include "coll/build_functions.h"
#include "coll/neighbors.h"
#include "coll/packer.h"

namespace weft {
namespace {

using BlockOf = Operand (*)(const Shape&, int);

// Returns where the message to or from each peer lies: in its only block, or in temporary space for
// all of its blocks.
std::vector<Operand> messages(Builder& b, const EdgesByPeer& all, BlockOf block_of) {
  std::vector<Operand> result;
  for (const Edges& edges : all.all()) {
    if (edges.blocks.size() == 1) {
      result.push_back(block_of(b.shape(), edges.blocks[0]));
      continue;
    }
    std::int64_t bytes = 0;
    for (int block : edges.blocks) bytes += payload_bytes(b, block_of(b.shape(), block));
    result.push_back({b.temp(bytes, Unit::byte), bytes, Unit::byte});
  }
  return result;
}

void repack(Builder& b, Packer::Way way, const EdgesByPeer& all,
            const std::vector<Operand>& messages, BlockOf block_of) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Edges& edges = all.all()[i];
    if (edges.blocks.size() == 1) continue;
    Packer packer(b, way, messages[i].at);
    for (int block : edges.blocks) packer.add(block_of(b.shape(), block));
    packer.finish();
  }
  b.end_round();
}

}  // namespace

void neighbor_combined(Builder& b) {
  const Shape& s = b.shape();
  const EdgesByPeer out(s, s.destinations), in(s, s.sources);
  const std::vector<Operand> sends = messages(b, out, outgoing);
  const std::vector<Operand> receives = messages(b, in, incoming);
  repack(b, Packer::Way::pack, out, sends, outgoing);
  for (std::size_t i = 0; i < receives.size(); ++i) b.recv(in.all()[i].peer, receives[i]);
  for (std::size_t i = 0; i < sends.size(); ++i) b.send(out.all()[i].peer, sends[i]);
  copy_to_self(b);
  b.end_round();
  repack(b, Packer::Way::unpack, in, receives, incoming);
}

}  // namespace weft
