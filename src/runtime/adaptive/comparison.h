// Comparison is an exchange in which all ranks of a communicator learn the maximum of each word
// over all ranks. The words are times of the variants (engine and algorithm) that calls of one
// class may take. The application continues meanwhile.
#pragma once

#include <memory>

#include "runtime/request/requests.h"
#include "select/learner.h"

namespace weft {

class Runtime;

// The words that a comparison sends and receives. They are in a base class so that they exist
// before the constructor of the other base class uses their addresses.
struct ComparedWords {
  Learner::Words own{};
  Learner::Words greatest{};
};

class Comparison final : private ComparedWords, public CollectiveOperation {
 public:
  Comparison(CallId id, std::shared_ptr<Communicator> communicator,
             std::shared_ptr<const Schedule> schedule, int tag, const Learner::Words& words);

  // Returns the maxima over all ranks. It is valid once done() returns true. If a message has
  // failed, it returns this rank's own words; the job will soon end in this case.
  const Learner::Words& result() const { return error_code() == MPI_SUCCESS ? greatest : own; }
};

// Starts a comparison, which the progress thread advances. It uses up a sequence number of the
// communicator, so all ranks must start comparisons and collectives in the same order.
std::shared_ptr<Comparison> begin_comparison(Runtime& runtime, CallId id,
                                             Communicator& communicator,
                                             const Learner::Words& words);

}  // namespace weft
