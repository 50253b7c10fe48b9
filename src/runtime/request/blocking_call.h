// BlockingCall: marks that the application is inside an MPI call that may wait for another process.
#pragma once

#include <mpi.h>

#include <functional>

#include "base/left_calls.h"
#include "engine/progress.h"
#include "library/generated/call_ids.h"
#include "runtime/request/watchdog.h"

namespace weft {

// Marks, while it lives, that the application is inside an MPI call that may wait for another
// process. Meanwhile the progress thread takes over operations that the caller would have advanced.
// If there may be no such thread, the call is made in its non-blocking form, and the caller
// advances operations while it waits.
class BlockingCall {
 public:
  explicit BlockingCall(CallId id);
  ~BlockingCall();
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

  // Returns whether no thread can take operations over. The result is constant and equal on all
  // ranks, because the blocking and the non-blocking form of a collective do not match each other.
  bool must_not_block() const { return alone_; }
  // Returns whether this rank must advance operations at this moment. Is only for calls whose
  // blocking and non-blocking forms match each other.
  bool must_help() const;
  // Starts the call by `post` and advances operations until it has completed. status: nullptr to
  // ignore it.
  int drive(const std::function<int(MPI_Request*)>& post, MPI_Status* status);
  // Repeats the non-blocking form until it sets its flag, and advances operations meanwhile.
  int repeat(const std::function<int(int*)>& ask);

 private:
  const CallId id_;
  const WatchedCall watched_{id_};
  LongjmpSafe<Progress::Blocked> handed_over_;
  bool alone_ = false;
  long long began_ns_ = 0;  // time of the beginning; 0 without summary and trace
};

}  // namespace weft
