// CallOnTrial is a collective call that is made only to be measured. It has buffers of Weft's own,
// filled with zeros, so that reduction operators do not meet arbitrary numbers.
#pragma once

#include <vector>

#include "base/buffer_pool.h"
#include "schedule/collective.h"
#include "transport/mpi/call.h"

namespace weft {

class CallOnTrial {
 public:
  // shape: the result of shape_on_trial() for `call`. temp_bytes: the size of the largest temporary
  // buffer of any schedule to be measured.
  CallOnTrial(const Shape& shape, const Call& call, std::int64_t temp_bytes);
  CallOnTrial(const CallOnTrial&) = delete;
  CallOnTrial& operator=(const CallOnTrial&) = delete;

  // Returns whether there is memory for all buffers. Memory for the schedules' temporary buffers is
  // then in the pool (base/buffer_pool.h).
  bool there() const { return send_.there() && recv_.there() && temp_is_there_; }
  // Returns the call to measure, for a schedule or for the MPI library.
  const Call& call() const { return call_; }

 private:
  // The arrays of counts, displacements and datatypes for the blocks of a buffer.
  struct Blocks {
    explicit Blocks(const std::vector<Block>& blocks);
    std::vector<int> counts, places;
    std::vector<MPI_Datatype> types;
  };

  void count(const Shape& shape);

  const TempBuffer send_, recv_;
  const bool temp_is_there_;
  const Blocks sends_, recvs_;
  Call call_;
};

}  // namespace weft
