// CallOnTrial: a call that is measured, with buffers of Weft's in place of the application's; all
// zero, so that no operator meets a wild number.
#pragma once

#include <vector>

#include "base/buffer_pool.h"
#include "schedule/collective.h"
#include "transport/mpi/call.h"

namespace weft {

class CallOnTrial {
 public:
  // shape: by shape_on_trial(), of `call`. temp_bytes: what schedules need at most besides.
  CallOnTrial(const Shape& shape, const Call& call, std::int64_t temp_bytes);
  CallOnTrial(const CallOnTrial&) = delete;
  CallOnTrial& operator=(const CallOnTrial&) = delete;

  // What schedules need besides will then be in the pool.
  bool there() const { return send_.there() && recv_.there() && temp_is_there_; }
  // Of a schedule, or for the MPI library.
  const Call& call() const { return call_; }

 private:
  void count(const Shape& shape);

  const TempBuffer send_, recv_;
  const bool temp_is_there_;
  std::vector<int> counts_, places_;
  Call call_;
};

}  // namespace weft
