// CallOnTrial: the call that a measurement makes. It has zeroed buffers of Weft in place of the
// application's, so that reduction operators meet no arbitrary numbers.
#pragma once

#include <vector>

#include "base/buffer_pool.h"
#include "schedule/collective.h"
#include "transport/mpi/call.h"

namespace weft {

class CallOnTrial {
 public:
  // shape: shape_on_trial() of `call`. temp_bytes: the largest temporary buffer of any schedule.
  CallOnTrial(const Shape& shape, const Call& call, std::int64_t temp_bytes);
  CallOnTrial(const CallOnTrial&) = delete;
  CallOnTrial& operator=(const CallOnTrial&) = delete;

  // Returns whether the memory for all buffers is available. The memory of temporary buffers for
  // schedules is then in the pool (base/buffer_pool.h).
  bool there() const { return send_.there() && recv_.there() && temp_is_there_; }
  // Returns the call for a schedule or for the MPI library.
  const Call& call() const { return call_; }

 private:
  void count(const Shape& shape);

  const TempBuffer send_, recv_;
  const bool temp_is_there_;
  std::vector<int> counts_, places_;
  Call call_;
};

}  // namespace weft
