// TellingEdges: while the program goes on, the ranks of each node tell each other which blocks they
// give and take in the neighbourhood calls of a class (trial/told_edges.h does so during an
// initialisation, which may wait). With these edges, calls of the class can send joined messages
// between nodes. Later calls may give other blocks; each end of such a block knows it, and sends
// the block alone (coll/neighbor_joined.cc). So the ranks need not agree again.
#pragma once

#include <memory>

#include "library/generated/call_ids.h"
#include "runtime/request/requests.h"
#include "runtime/trial/edge_lists.h"

namespace weft {

class Runtime;

class TellingEdges {
 public:
  // Begins the exchange, which the progress thread continues. It uses up sequence numbers of the
  // communicator, so all ranks must begin in the same order among their collectives there. shape:
  // that of the class's first call on this rank.
  TellingEdges(Runtime& runtime, CallId id, Communicator& communicator, const Shape& shape);
  ~TellingEdges();
  TellingEdges(const TellingEdges&) = delete;
  TellingEdges& operator=(const TellingEdges&) = delete;

  bool is_over() const;
  // Returns the edges, once the exchange is over. Returns nullptr, perhaps on this rank only, if
  // both ends of some edge differ, if some rank has too many edges or too much data or is alone on
  // its node, or if a message has failed.
  std::shared_ptr<const NodeEdges> edges() const;

 private:
  class Messages;

  static std::shared_ptr<Messages> begin(Runtime& runtime, CallId id, Communicator& communicator,
                                         const Shape& shape, EdgeList own,
                                         std::size_t words_of_all);

  const Shape shape_;
  // Between the ranks of this node, and between all ranks.
  std::shared_ptr<Messages> lists_, sums_;
};

}  // namespace weft
