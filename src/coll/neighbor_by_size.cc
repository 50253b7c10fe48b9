// Linear neighborhood collective that starts its largest transfers first, so that none of them is
// left when the small ones are done. It suits irregular neighborhoods such as those of sparse
// tensors. Some ranks may use it while others use the linear algorithm, since each rank may choose
// its own order of peers. Graham, SIAM J. Appl. Math. 17(2), 1969 (longest processing time first)
#include <algorithm>
#include <utility>
#include <vector>

#include "coll/build_functions.h"
#include "coll/neighbors.h"
#include "coll/packer.h"

namespace weft {

void neighbor_by_size(Builder& b) {
  const Shape& s = b.shape();
  receive_from_neighbors(b);
  const EdgesByPeer out(s, s.destinations);
  std::vector<std::pair<std::int64_t, const Edges*>> by_bytes;
  for (const Edges& edges : out.all()) {
    std::int64_t bytes = 0;
    for (int block : edges.blocks) bytes += payload_bytes(b, outgoing(s, block));
    by_bytes.push_back({bytes, &edges});
  }
  std::stable_sort(by_bytes.begin(), by_bytes.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [bytes, edges] : by_bytes)
    for (int block : edges->blocks) b.send(edges->peer, outgoing(s, block));
  copy_to_self(b);
}

}  // namespace weft
