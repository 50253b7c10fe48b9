// Comparison: the ranks of a communicator exchange the times of a call class's variants while the
// application continues. Each rank gets the maximum of each word.
#pragma once

#include <memory>

#include "runtime/request/requests.h"
#include "select/learner.h"

namespace weft {

class Runtime;

// The words that a comparison sends and receives. They are in a base class, since the operation
// needs them in its constructor.
struct ComparedWords {
  Learner::Words own{};
  Learner::Words greatest{};
};

class Comparison final : private ComparedWords, public CollectiveOperation {
 public:
  Comparison(CallId id, std::shared_ptr<Communicator> communicator,
             std::shared_ptr<const Schedule> schedule, int tag, const Learner::Words& words);

  // Returns the maxima; valid after done(). If a message failed, the job is about to end, and this
  // rank's own words are returned.
  const Learner::Words& result() const { return error_code() == MPI_SUCCESS ? greatest : own; }
};

// Begins a comparison, which the progress thread carries out. Uses up a sequence number of the
// communicator, so that all ranks must call it in the same order.
std::shared_ptr<Comparison> begin_comparison(Runtime& runtime, CallId id,
                                             Communicator& communicator,
                                             const Learner::Words& words);

}  // namespace weft
