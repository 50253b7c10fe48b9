// Comparison: the ranks of a communicator tell each other what a site's ways have taken, while the
// application goes on: of each word each rank gets the greatest.
#pragma once

#include <memory>

#include "runtime/request/requests.h"
#include "select/learner.h"

namespace weft {

class Runtime;

// Where it tells and hears; apart, since an operation needs to know it from its beginning.
struct ComparedWords {
  Learner::Words own{};
  Learner::Words greatest{};
};

class Comparison final : private ComparedWords, public CollectiveOperation {
 public:
  Comparison(CallId id, std::shared_ptr<Communicator> communicator,
             std::shared_ptr<const Schedule> schedule, int tag, const Learner::Words& words);

  // After done(). Where a message failed, the job is about to end: what this rank knows must do.
  const Learner::Words& result() const { return error_code() == MPI_SUCCESS ? greatest : own; }
};

// The thread goes on with it. Takes a number on the communicator.
std::shared_ptr<Comparison> begin_comparison(Runtime& runtime, CallId id,
                                             Communicator& communicator,
                                             const Learner::Words& words);

}  // namespace weft
