// JointAnswers: lets the ranks of one node give the same answer to a question, without waiting: the
// first rank to ask decides, and the others take its answer. The ranks ask the same questions in
// the same order. The class is independent of MPI and of the kind of memory.
#pragma once

#include <cstdint>

#include "shm/node_comparisons.h"

namespace weft {

// JointAnswers: this rank's part. Its word of shared memory must be zero at first.
template <class Shared = SharedWords>
class JointAnswers {
 public:
  explicit JointAnswers(Shared shared) : shared_(shared) {}

  // Returns the answer to the next question; `own` is this rank's. All ranks must have had the
  // answer to the previous question before any rank asks the next one.
  bool next(bool own) {
    shared_.change(0, last_, 2 * (last_ / 2 + 1) + (own ? 1 : 0));
    last_ = shared_.get(0);
    return last_ % 2 != 0;
  }

 private:
  Shared shared_;
  std::int64_t last_ = 0;  // twice the number of the last question, plus 1 if the answer was yes
};

}  // namespace weft
