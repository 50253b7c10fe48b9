// BlockingCall: the application is inside a call that may wait for another process.
#pragma once

#include <mpi.h>

#include <functional>

#include "base/left_calls.h"
#include "engine/progress.h"
#include "library/generated/call_ids.h"
#include "runtime/request/watchdog.h"

namespace weft {

// Lives while the application is inside such a call: meanwhile the progress thread takes over what
// the caller would have advanced. If there may be no thread, the call is made in its non-blocking
// form and the caller keeps helping.
class BlockingCall {
 public:
  explicit BlockingCall(CallId id);
  ~BlockingCall();
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

  // Returns whether no thread can take anything over. The answer is constant and the same on all
  // ranks, since the blocking and the non-blocking form of a collective do not match each other.
  bool must_not_block() const { return alone_; }
  // Returns whether this rank must help at this moment; only for calls whose two forms match each
  // other.
  bool must_help() const;
  // Starts the call by `post` and helps until it has completed. status: nullptr to ignore it.
  int drive(const std::function<int(MPI_Request*)>& post, MPI_Status* status);
  // Repeats the non-blocking form until it sets `flag`, and helps meanwhile.
  int repeat(const std::function<int(int*)>& ask);

 private:
  const CallId id_;
  const WatchedCall watched_{id_};
  Lasting<Progress::Blocked> handed_over_;
  bool alone_ = false;
  long long began_ns_ = 0;  // 0: nobody observes
};

}  // namespace weft
